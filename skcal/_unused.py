"""Options that a call would not use: they are refused, not ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from skcal._sklearn_compat import _get_threadlocal_config
from skcal._validation import InputError

_F = TypeVar("_F", bound=Callable)


def used_with(**conditions: Mapping[str, Any] | str) -> Callable[[_F], _F]:
    """Refuse an option, other than its default, unless all conditions hold.

    Calls by other public functions, such as reports, may hand on every option.

    Parameters
    ----------
    **conditions : dict or str
        For each keyword option what makes use of it: names of other options, and the tuple of
        values, or a callable of the value that says whether the option is used. The name of
        another option stands for any value of that but None.
    """

    def named(function: Any) -> Any:
        function._used_with = {
            option: {used: _is_given} if isinstance(used, str) else used
            for option, used in conditions.items()
        }

        @wraps(function)
        def called(*args, **kwargs):
            if kwargs and not _get_threadlocal_config()["skip_parameter_validation"]:
                refuse_unused(function, kwargs)
            return function(*args, **kwargs)

        return called

    return named


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
