"""What the command line prints, whatever the streams are."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress

from skcal._show import printable


def say(text="") -> None:
    """Print a text on the standard output, if there is one.

    Characters that its encoding lacks are printed as JSON escapes them.

    Raises
    ------
    OSError
        With "standard output" as its ``filename``: nothing more can be written.
    """
    if sys.stdout is None:
        return
    try:
        print(_encodable(str(text), sys.stdout.encoding or "utf-8"))
    except OSError as error:
        raise _named(error) from None


def flush() -> None:
    """Write what was said; raises as :func:`say` does."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _named(error) from None


def tell(text: str) -> None:
    """Print a line on the error stream, if there is one that takes it."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"skcal: {printable(' '.join(text.split()))}", file=sys.stderr, flush=True)


def _named(error: OSError) -> OSError:
    error.filename = "standard output"
    return error


def _encodable(text: str, encoding: str) -> str:
    def shown(match):
        try:
            match[0].encode(encoding)
        except UnicodeEncodeError:
            return json.dumps(match[0])[1:-1]
        return match[0]

    return text if encoding.lower() == "utf-8" else re.sub("[^\x00-\x7f]", shown, text)
