"""The only module that imports private or version-dependent names of scikit-learn.

Arguments of calls are checked here, also those that a call would not use.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from sklearn._config import _get_threadlocal_config
from sklearn.base import _fit_context as _untyped_fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.metrics.pairwise import _euclidean_distances
from sklearn.utils import _safe_indexing
from sklearn.utils._array_api import get_namespace
from sklearn.utils._param_validation import (
    HasMethods,
    Hidden,
    Interval,
    InvalidParameterError,
    StrOptions,
    make_constraint,
    validate_parameter_constraints,
)
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import _check_method_params, _num_samples

from skcal.exceptions import InputError

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
_LONGEST_VALUE = 200  # characters of a value that are shown


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


class ParameterError(InvalidParameterError):
    """An argument outside of its constraints, in scikit-learn's words, and in parts for callers."""

    def __init__(self, function: str, argument: str, allowed: list[str], shown: str) -> None:
        super().__init__(function, argument, allowed, shown)
        self.function, self.argument, self.allowed, self.shown = function, argument, allowed, shown

    def reason(self, allowed: list[str]) -> str:
        """What the value must be, and what it is."""
        *others, last = allowed
        text = f"{', '.join(others)} or {last}" if others else last
        return f"must be {text}. Got {self.shown} instead."

    def __str__(self) -> str:
        return f"The {self.argument!r} parameter of {self.function} {self.reason(self.allowed)}"


def _takes_any(parameters: Mapping[str, Parameter]) -> bool:
    return any(param.kind is Parameter.VAR_KEYWORD for param in parameters.values())


def refuse_misspelt(name: str, parameters: Mapping[str, Parameter], kwargs) -> None:
    """Raise a TypeError for a name that is no parameter, and say what it may mean."""
    for argument in kwargs:
        if argument in parameters or _takes_any(parameters):
            continue
        known = [param for param in parameters if param not in ("self", "cls")]
        close = get_close_matches(argument, known, n=1, cutoff=0.7)
        remedy = f"Did you mean {close[0]!r}?" if close else f"Use {', '.join(known)}."
        raise TypeError(f"{name}() got an unexpected keyword argument {argument!r}. {remedy}")


def validate_params(
    parameter_constraints: Mapping[str, Any],
    *,
    prefer_skip_nested_validation: bool = True,
    used_with: Mapping[str, Mapping[str, Any] | str] | None = None,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Check the arguments of a function, as scikit-learn's decorator of this name does.

    Its own takes as long as a function of small samples, and does not say which parameter a
    misspelt one may mean. Calls by other public functions, such as reports, may hand on every
    option.

    Parameters
    ----------
    parameter_constraints : dict
        As there.
    prefer_skip_nested_validation : bool, default=True
        As there.
    used_with : dict, default=None
        For keyword options what makes use of each: names of other options, and the tuple of
        values, or a callable of the value that says whether the option is used. The name of
        another option stands for any value of that but None. An option, other than its default, is
        refused unless all hold.
    """
    conditions = {
        option: {used: _is_given} if isinstance(used, str) else used
        for option, used in (used_with or {}).items()
    }

    def named(function: Any) -> Any:
        name, parameters = function.__qualname__, dict(signature(function).parameters)
        constraints = {
            key: [make_constraint(constraint) for constraint in some]
            for key, some in parameter_constraints.items()
            if some != "no_validation"
        }
        places = [
            (key, constraints.get(key) if param.kind is Parameter.POSITIONAL_OR_KEYWORD else None)
            for key, param in parameters.items()
        ]

        function._skl_parameter_constraints = parameter_constraints  # as there
        function._used_with = conditions

        @wraps(function)
        def called(*args, **kwargs):
            config = _get_threadlocal_config()  # config_context copies it twice
            before = config["skip_parameter_validation"]
            if not before:
                if kwargs:
                    refuse_unused(function, kwargs)
                    refuse_misspelt(name, parameters, kwargs)
                for (key, some), value in zip(places, args, strict=False):
                    check_parameter(name, key, value, some)
                for key, value in kwargs.items():
                    check_parameter(name, key, value, constraints.get(key))
            config["skip_parameter_validation"] = prefer_skip_nested_validation or before
            try:
                return function(*args, **kwargs)
            finally:
                config["skip_parameter_validation"] = before

        return called

    return named


def check_parameter(function: str, argument: str, value: Any, constraints) -> None:
    """Raise ParameterError unless a value meets one of the constraints, if there are any."""
    if constraints is None or any(constraint.is_satisfied_by(value) for constraint in constraints):
        return
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]} …"
    allowed = [str(constraint) for constraint in constraints if not constraint.hidden]
    raise ParameterError(function, argument, allowed, shown)


def refuse_unused(function: Callable, given: Mapping[str, Any]) -> None:
    """Raise for the first of some options that the function would not use with the others."""
    conditions = getattr(function, "_used_with", {})
    concerned = [option for option in conditions if option in given]
    if not concerned:
        return
    defaults = {name: param.default for name, param in signature(function).parameters.items()}
    for option in concerned:
        if _same(given[option], defaults[option]):
            continue
        for other, allowed in conditions[option].items():
            value = given.get(other, defaults[other])
            if callable(allowed):
                used, remedy = allowed(value), f"Leave {option} out."
            else:
                used = any(_same(value, one) for one in allowed)
                remedy = f"Leave {option} out, or pass {other}={allowed[0]!r}."
            if not used:
                raise InputError(option, f"is not used with {other}={repr(value)[:60]}.", remedy)


def is_named(kernel: Any) -> bool:
    """Whether a kernel is one of skcal, with a bandwidth; a callable one has its own."""
    return not callable(kernel)


def _is_given(value: Any) -> bool:
    """Whether an option that is None by default is passed."""
    return value is not None


def _same(value: Any, other: Any) -> bool:
    return value is other or (isinstance(value, str | int | float) and value == other)


__all__ = [
    "BaseScorer",
    "CallbackSupportMixin",
    "HasMethods",
    "Hidden",
    "Interval",
    "ParameterError",
    "StrOptions",
    "_check_method_params",
    "_euclidean_distances",
    "_fit_context",
    "_get_threadlocal_config",
    "_get_threadpool_controller",
    "_num_samples",
    "_safe_indexing",
    "as_tasks",
    "get_namespace",
    "is_named",
    "refuse_unused",
    "shared_by_scorers",
    "validate_parameter_constraints",
    "validate_params",
]
