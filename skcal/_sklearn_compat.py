"""The only module that imports private or version-dependent names of scikit-learn."""

import re
from difflib import get_close_matches
from inspect import Signature

from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
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
from sklearn.utils.validation import _check_method_params

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class _NoContext:
        """Stands for a callback context where there are no callbacks."""

        def subcontext(self, **options):
            return self

        def call_on_fit_task_begin(self, **arguments):
            return self

        def call_on_fit_task_end(self, **arguments):
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Without callbacks: `verbose` shows progress."""

        def _init_callback_context(self, **options):
            return _NoContext()


def limit_blas_threads(limit: int | None):
    """Context in which BLAS uses at most so many threads; None leaves them as they are."""
    return _get_threadpool_controller().limit(limits=limit, user_api="blas")


class _NamingSignature(Signature):
    """Lets errors of ``bind`` name the function and the parameter that may be meant."""

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
    """scikit-learn's decorator, which binds the arguments by the function's signature.

    A wrapper would add a frame, and warnings would name its line.
    """
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
    "_fit_context",
    "_routing_enabled",
    "_safe_indexing",
    "limit_blas_threads",
    "validate_parameter_constraints",
    "validate_params",
]
