"""What skcal says of a result: as data to who listens, otherwise as a warning.

Python's ``catch_warnings`` sets what all threads share, so that two threads that leave it in
another order than they entered keep each other's filters. A listener belongs to its context alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar, copy_context
from types import FrameType
from typing import Any, NamedTuple

_INSIDE = {"skcal", "sklearn", "joblib", "scipy"}
_LISTENER: ContextVar[list | None] = ContextVar("skcal_notes", default=None)


class Note(NamedTuple):
    """A message and the class of the warning that it would be."""

    message: str
    category: type[Warning]


def note(message: str, category: type[Warning] = UserWarning) -> None:
    """Tell the listener of this context, or warn of the line outside that called the package."""
    heard = _LISTENER.get()
    if heard is None:
        warnings.warn(message, category, stacklevel=1 + _frames_inside())
    else:
        heard.append(Note(message, category))


def _frames_inside() -> int:
    """How many calls from that of :func:`note` on are of this package, or of one it goes through.

    A number beside each message would hold for one way to it alone.
    """
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame, count = frame.f_back, count + 1
    return count


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
