"""What skcal says of a result: as data to who listens, otherwise as a warning.

Python's ``catch_warnings`` sets what all threads share, so that two threads that leave it in
another order than they entered keep each other's filters. A listener belongs to its context alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple

_INNER = {"skcal", "sklearn", "contextlib"}
_LISTENER: ContextVar[list | None] = ContextVar("skcal_notes", default=None)


class Note(NamedTuple):
    """A message and the class of the warning that it would be."""

    message: str
    category: type[Warning]


def note(message: str, category: type[Warning] = UserWarning) -> None:
    """Tell the listener of this context, or warn of the line that called skcal."""
    heard = _LISTENER.get()
    if heard is None:
        warnings.warn(message, category, stacklevel=_levels_to_caller())
    else:
        heard.append(Note(message, category))


def _levels_to_caller() -> int:
    """How far above :func:`note` the first frame is that is neither skcal's nor its wrappers'."""
    frame, level = sys._getframe(2), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INNER:
        frame, level = frame.f_back, level + 1
    return level


def listen(notes: list[Note], function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)``; what it notes is appended to ``notes``, also when it raises.

    It runs in a copy of the context, so that nothing is left to undo, whenever it is interrupted.
    """

    def listening():
        _LISTENER.set(notes)
        return function(*arguments)

    return copy_context().run(listening)


def pass_on(notes: Iterable[Note]) -> None:
    """Note again what was heard elsewhere, such as in a worker."""
    for one in notes:
        note(*one)
