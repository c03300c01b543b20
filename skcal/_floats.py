"""What numpy says of overflows and divisions by zero, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def ignoring(*kinds: str) -> Iterator[None]:
    """As ``np.errstate`` with "ignore", and restored whenever an interrupt comes.

    The end of ``np.errstate`` is a function of Python, which may be interrupted before it restores.
    """
    before = np.geterr()
    try:
        np.seterr(**dict.fromkeys(kinds, "ignore"))  # type: ignore[arg-type]
        yield
    finally:
        try:
            np.seterr(**before)
        except BaseException:  # an interrupt just now
            np.seterr(**before)
            raise
