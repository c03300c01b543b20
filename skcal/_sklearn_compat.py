"""The only module that imports private or version-dependent names of scikit-learn."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, ParamSpec, TypeVar

from sklearn._config import _get_threadlocal_config
from sklearn.base import _fit_context as _untyped_fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.metrics.pairwise import _euclidean_distances
from sklearn.utils import _safe_indexing
from sklearn.utils._array_api import get_namespace
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    make_constraint,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import validate_params as _validate_params
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


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _fit_context(
    *, prefer_skip_nested_validation: bool
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """scikit-learn's decorator, which keeps the signature for type checkers."""
    return _untyped_fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def shared_by_scorers(method_caller: Any, key: str, compute: Callable[[], _R]) -> _R:
    """Return what several scorers of one run compute once, where they share a cache."""
    cache = next(iter(getattr(method_caller, "args", ())), None)
    if not isinstance(cache, dict):
        return compute()
    if key not in cache:
        cache[key] = compute()
    return cache[key]


def as_tasks(results: Iterable, names: Iterable[str], estimator, context) -> Iterator:
    """Yield results, telling the callbacks of an estimator when each begins and is there."""
    results = iter(results)
    for name in names:
        task = context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=estimator)
        result = next(results)
        task.call_on_fit_task_end(estimator=estimator)
        yield result


class NamingSignature(Signature):
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


def validate_params(
    parameter_constraints: Mapping[str, Any], *, prefer_skip_nested_validation: bool = True
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """scikit-learn's decorator, whose errors say which parameter a misspelt one may mean.

    The signature is bound, and the constraints are read, only where an argument is wrong: for small
    samples that takes as long as the function.
    """

    def named(function: Any) -> Any:
        signature = NamingSignature.from_callable(function)
        signature.name = function.__qualname__
        function.__signature__ = signature
        checked = _validate_params(
            parameter_constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
        )(function)
        kinds = {parameter.kind for parameter in signature.parameters.values()}
        if kinds & {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
            return checked
        are_right = _argument_check(signature.parameters, parameter_constraints)

        @wraps(checked)
        def called(*args, **kwargs):
            if not are_right(args, kwargs):
                return checked(*args, **kwargs)
            config = _get_threadlocal_config()  # config_context copies it twice
            before = config["skip_parameter_validation"]
            config["skip_parameter_validation"] = prefer_skip_nested_validation or before
            try:
                return function(*args, **kwargs)
            except InvalidParameterError as error:  # of what the function calls
                name = f"parameter of {function.__qualname__} must be"
                text = re.sub(r"parameter of \w+ must be", name, str(error))
                raise InvalidParameterError(text) from error
            finally:
                config["skip_parameter_validation"] = before

        return called

    return named


def _argument_check(parameters, parameter_constraints):
    """A function that tells whether (args, kwargs) bind and meet the constraints."""
    positional = [k for k, one in parameters.items() if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    required = {k for k, one in parameters.items() if one.default is Parameter.empty}
    constraints = {
        name: [make_constraint(one) for one in parameter_constraints[name]]
        if parameter_constraints.get(name, "no_validation") != "no_validation"
        else None
        for name in parameters
    }

    def are_right(args, kwargs):
        if len(args) > len(positional):
            return False
        passed = dict(zip(positional, args, strict=False))
        if not passed.keys().isdisjoint(kwargs):
            return False
        passed.update(kwargs)
        return (
            passed.keys() <= constraints.keys()
            and required <= passed.keys()
            and all(
                of_name is None or any(one.is_satisfied_by(value) for one in of_name)
                for value, of_name in ((value, constraints[name]) for name, value in passed.items())
            )
        )

    return are_right


__all__ = [
    "BaseScorer",
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "_check_method_params",
    "_euclidean_distances",
    "_fit_context",
    "_get_threadpool_controller",
    "_num_samples",
    "_safe_indexing",
    "as_tasks",
    "get_namespace",
    "shared_by_scorers",
    "validate_parameter_constraints",
    "validate_params",
]
