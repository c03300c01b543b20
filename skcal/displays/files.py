"""Files of figures, with the same bytes each time."""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path

from skcal._files import replacing

FORMATS = (".png", ".svg", ".pdf")
_DATES: dict[str, dict] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save_figure(figure, path) -> None:
    """Write a figure without date and random identifiers; a file is replaced as a whole."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise ValueError(
            f"path={str(path)!r} has the ending {ending!r}. Use one of {', '.join(FORMATS)}."
        )
    content = rendered(figure, ending[1:])
    with replacing(path) as file:
        file.write(content)


def rendered(figure, kind: str, **options) -> bytes:
    """The bytes of the figure as a kind of file; nothing outside of the figure is set."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()  # layouts settle in the second pass
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=_DATES.get(kind), dpi=150, **options)
    return _with_fixed_identifiers(file.getvalue()) if kind == "svg" else file.getvalue()


_IDENTIFIERS = re.compile(rb'((?:id="|href="#|url\(#)[^")]*?)([0-9a-f]{10})(?=["\)])')


def _with_fixed_identifiers(svg: bytes) -> bytes:
    """Number the random identifiers; with a hash, so that two figures may be in one document."""
    numbers: dict[bytes, bytes] = {}
    for match in _IDENTIFIERS.finditer(svg):
        numbers.setdefault(match[2], b"%x" % len(numbers))
    numbered = _IDENTIFIERS.sub(lambda match: match[1] + numbers[match[2]], svg)
    digest = hashlib.sha256(numbered).hexdigest()[:10].encode()
    return _IDENTIFIERS.sub(lambda match: match[1] + digest + b"-" + numbers[match[2]], svg)
