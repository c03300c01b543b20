"""Files that are replaced as a whole."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path, mode: str = "wb", **options: Any) -> Iterator[IO]:
    """Open a new file that takes the place of ``path`` when the block ends without an error.

    Whatever fails, a full disk or an interrupt, leaves the old file whole and no other beside it.

    Parameters
    ----------
    path : path-like
        The file to write; of a symbolic link its target is replaced. What is no regular file, such
        as a terminal or a pipe, is written to directly.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text.
    **options
        ``encoding``, ``newline`` and ``errors`` of text, as of :func:`open`.

    Yields
    ------
    file : file object
        A file in the same folder with the permissions of the old one, or, where there is none,
        those of any new file.

    Raises
    ------
    OSError
        With ``path`` as its ``filename``: the file or its folder cannot be written, or the disk is
        full.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        if target.is_symlink():  # a loop
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        old = target.stat() if target.exists() else None
        if old is not None and not stat.S_ISREG(old.st_mode):
            with open(target, mode, **options) as file:  # a folder is refused here
                yield file
        else:
            with _taking_the_place(beside, target, old, mode, options) as file:
                yield file
    except OSError as error:
        own = error.filename is None or Path(os.fsdecode(error.filename)) in (target, beside)
        if own and error.errno is not None:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise


@contextmanager
def _taking_the_place(beside, target, old, mode, options):
    """A new file that takes the place of another at the end."""
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        with open(beside, mode.replace("w", "x"), **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # some file systems say only now that they are full
        if old is not None:
            _take_after(beside, old)
        os.replace(beside, target)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _take_after(path, old):
    """Give a file the owner, as far as that is allowed, and the permissions of another."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))
