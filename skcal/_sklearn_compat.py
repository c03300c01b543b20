"""The only module that imports private or version-dependent names of scikit-learn."""

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from difflib import get_close_matches
from inspect import Signature

from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.metrics.pairwise import _euclidean_distances
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import validate_params as _validate_params
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import _check_method_params, _num_samples

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class _NoContext:
        """Stands for a callback context where there are no callbacks."""

        def subcontext(self, **options):
            return self

        def propagate_callback_context(self, sub_estimator):
            return nullcontext()

        def call_on_fit_task_begin(self, **arguments):
            return self

        def call_on_fit_task_end(self, **arguments):
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Without callbacks: `verbose` shows progress."""

        def set_callbacks(self, *callbacks):
            raise ImportError(
                "Callbacks need scikit-learn 1.9 or later: pip install 'scikit-learn>=1.9'."
            )

        def _init_callback_context(self, **options):
            return _NoContext()


def as_tasks(results: Iterable, names: Iterable[str], estimator, context) -> Iterator:
    """Yield results, telling the callbacks of an estimator when each begins and is there."""
    results = iter(results)
    for name in names:
        task = context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=estimator)
        result = next(results)
        task.call_on_fit_task_end(estimator=estimator)
        yield result


class _NamingSignature(Signature):
    """A signature whose ``bind`` names the function and the parameter that may be meant."""

    name = "function"

    def bind(self, /, *args, **kwargs):
        try:
            return super().bind(*args, **kwargs)
        except TypeError as error:
            known = [name for name in self.parameters if name != "self"]
            unknown = [name for name in kwargs if name not in known]
            text = re.sub("^(too|multiple)", r"got \1", str(error))
            if unknown:
                close = get_close_matches(unknown[0], known, n=1, cutoff=0.7)
                text += f". Did you mean {close[0]!r}?" if close else f". Use {', '.join(known)}."
            elif "too many" in text:
                text += ". Pass options by name."
            raise TypeError(f"{self.name}() {text}") from None


def validate_params(parameter_constraints, **options):
    """scikit-learn's decorator, whose errors say which parameter a misspelt one may mean."""
    decorate = _validate_params(parameter_constraints, **options)

    def named(function):
        function.__signature__ = _NamingSignature.from_callable(function)
        function.__signature__.name = function.__qualname__
        return decorate(function)

    return named


__all__ = [
    "BaseScorer",
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "_check_method_params",
    "_euclidean_distances",
    "_fit_context",
    "_get_threadpool_controller",
    "_num_samples",
    "_routing_enabled",
    "_safe_indexing",
    "as_tasks",
    "validate_parameter_constraints",
    "validate_params",
]
