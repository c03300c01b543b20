"""What several displays draw alike: colours, names, legends, bands and rows of markers.

Files of figures have the same bytes each time.
"""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path

import numpy as np

from skcal._show import broken, cut_apart, replacing
from skcal.sample import Sample

# Okabe & Ito's palette, which colour-blind readers tell apart.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.6"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "0.45")
POINTS = 72  # an inch
_LETTER, _HANDLE = 0.6 / POINTS, 0.6  # of a letter as a part of its size, and inches beside it
_COLUMN, _ALONE, _SMALLER = 1.2, 0.85, 0.9  # room and size of titles, beside others and alone
_DIGIT = 0.64  # the width of a digit, as a part of the size of its letters
_TICKS_APART, _SIDE = 0.06, 0.15  # inches between numbers of ticks, and of a label at a side
_OF_HEIGHT = 0.7  # room of labels at the side
_FREE, _SPACED = 0.75, 1.25  # of the height of axes, beside labels; and from line to line
LEGEND = {"fontsize": "medium", "frameon": False, "handlelength": 1.2, "labelspacing": 0.3}


def colour_of(k: int) -> str:
    """The colour of the k-th curve."""
    return COLOURS[k % len(COLOURS)]


def styled(given: dict, **defaults) -> dict:
    """Options of lines: those given, by their long or short names, before the defaults."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return {**defaults, **normalize_kwargs(given, Line2D)}


def in_inches(ax):
    """Across in widths of the axes, up in inches from their lower edge."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    up = ax.figure.dpi_scale_trans + ScaledTranslation(0, 0, ax.transAxes)
    return blended_transform_factory(ax.transAxes, up)


def legend_below(ax, parts=None):
    """Draw a legend below the labels of the axes, where it hides nothing.

    ``parts`` are pairs of an artist and its label; None: those of the axes.
    """
    parts = list(zip(*ax.get_legend_handles_labels(), strict=True)) if parts is None else parts
    label, tick = ax.xaxis.label, ax.xaxis.get_major_ticks(1)[0]
    n_lines = label.get_text().count("\n") + bool(label.get_text())
    size, widest = (
        label.get_size(),
        max(len(line) for _, text in parts for line in text.split("\n")),
    )
    depth = tick.get_pad() + 1.4 * tick.label1.get_size() + 1.3 * n_lines * size + 8
    width = ax.get_position(original=True).width * ax.figure.bbox.width / ax.figure.dpi
    n_columns = int(np.clip(width / (_LETTER * size * widest + _HANDLE), 1, 2))
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -depth / POINTS), "borderaxespad": 0}
    look = {"bbox_transform": in_inches(ax), "ncols": n_columns, **LEGEND}
    look["fontsize"] = _SMALLER * size if is_small(ax) else LEGEND["fontsize"]
    return ax.legend(*zip(*parts, strict=True), **place, **look)


def titled(name, facts: str, width: int = 32) -> str:
    """A title: the name, if there is one, above the facts."""
    return f"{as_label(name, width)}\n{facts}" if name else facts


def set_title(ax, text: str, **place) -> None:
    """Write a title, in smaller letters and more lines where it is wider than there is room.

    It is centred on the axes. If these stand alone, labels at the left are no room for it.
    """
    size, spec = ax.xaxis.label.get_size(), ax.get_subplotspec()
    width = ax.get_position(original=True).width * ax.figure.bbox.width / ax.figure.dpi
    width *= _COLUMN if spec and spec.get_gridspec().ncols > 1 else _ALONE
    text = "\n".join(
        _in_lines(line, int(width / (_LETTER * _SMALLER * size))) for line in text.split("\n")
    )
    fits = width / (_LETTER * max(1, *map(len, text.split("\n"))))
    ax.set_title(text, fontsize=float(np.clip(fits, _SMALLER * size, size)), **place)


def _in_lines(line: str, width: int) -> str:
    """A line that is too long, cut before a parenthesis, after a comma or colon, or at blanks."""
    for mark in (" (", ", ", ": "):
        cut = line.rfind(mark, 0, width) + (mark != " (")
        if len(line) > width and cut > 0:
            return f"{line[:cut]}\n{_in_lines(line[cut:].strip(), width)}"
    return broken(line, width)


def side_label(ax, text: str) -> str:
    """A label of a vertical axis, on two lines where the axis may be shorter than the label."""
    blanks = [k for k, letter in enumerate(text) if letter == " "]
    if not blanks or not is_small(ax, len(text)):
        return text
    middle = min(blanks, key=lambda k: abs(k - len(text) / 2))
    return f"{text[:middle]}\n{text[middle + 1 :]}"


def is_small(ax, n_letters: int = 18) -> bool:
    """Whether a vertical label of so many letters, or ticks below each other, need more room."""
    height = ax.get_position(original=True).height * ax.figure.bbox.height / ax.figure.dpi
    return _LETTER * ax.yaxis.label.get_size() * n_letters > _OF_HEIGHT * height


def as_label(text, width: int = 32) -> str:
    """A name that fits: its start and end if longer, no formula, nothing that does not print."""
    return as_labels([text], width)[0]


def as_labels(texts, width: int = 32) -> list[str]:
    """Names that fit and of which no two look alike."""
    return [text.replace("$", r"\$") for text in cut_apart(texts, width)]


def counted(number: int, noun: str) -> str:
    """``1 curve``, ``2 curves``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def problem_titles(sample: Sample) -> list[str]:
    """The predicted quantity of each problem of a scalar notion, with names that fit."""
    return sample.notion.titles(as_labels(sample.classes, 24))


def ink(ax):
    """The colour of the text of axes, which suits light and dark styles."""
    return ax.xaxis.label.get_color()


def is_dark(ax) -> bool:
    """Whether the text of axes is light, as on a dark background."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ink(ax))) > 1.5


def band(ax, x, low, high, colour, alpha, label=None):
    """Fill the area between two curves, on a dark background with more colour."""
    alpha *= 1.8 if is_dark(ax) and colour not in (GREY, ink(ax)) else 1
    return ax.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0, label=label)


def shade(ax, first, last, label=None):
    """Shade a range of the horizontal axis that matters."""
    look = {"color": ORANGE, "alpha": 0.3 if is_dark(ax) else 0.12, "linewidth": 0, "zorder": 0}
    return ax.axvspan(first, last, label=label, **look)


def diagonal(ax):
    """Draw where calibrated predictions lie."""
    ends = 1e-9, 1 - 1e-9  # of a logit axis too
    [line] = ax.plot(ends, ends, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    return line


def hide_inner_labels(axes, numbers: bool = True) -> None:
    """Leave vertical labels to the first axes of each row, if these are panels too.

    Counts beside a strip stay, without the names that they share. ``numbers`` says whether those
    of ticks go.
    """
    specs = {ax: ax.get_subplotspec() for ax in axes}
    first = {spec.rowspan.start for spec in specs.values() if spec and spec.is_first_col()}
    for ax, spec in specs.items():
        if spec and spec.rowspan.start in first and not spec.is_first_col():
            ax.set_ylabel("")
            ax.tick_params(axis="y", labelleft=not numbers)
            for strip in ax.child_axes:
                counts = [label.get_text().partition(" ")[0] for label in strip.get_yticklabels()]
                shown = [count if count[:1].isdigit() else "" for count in counts]
                strip.set_yticks(strip.get_yticks(), shown)


def rows_that_fit(ax, n_lines: int) -> int:
    """How many rows of markers the axes have room for, whose names have so many lines."""
    height = ax.get_position(original=True).height * ax.figure.bbox.height / ax.figure.dpi
    size = ax.xaxis.get_major_ticks(1)[0].label1.get_size()
    return max(int(_FREE * height * POINTS / (_SPACED * size * n_lines)), 1)


def name_rows(ax, labels, **look) -> None:
    """Name rows of markers from the top down."""
    ax.set(yticks=np.arange(len(labels)), ylim=(len(labels) - 0.4, -0.6))
    ax.set_yticklabels(labels, **look)


_RATIOS = (  # ticks beside each other, from far to near
    (0.001, 0.01, 0.1, 1, 10, 100, 1000),
    (0.06, 0.25, 1, 4, 16),
    (0.1, 0.25, 0.5, 1, 2, 4, 10),
    (0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4),
    (0.5, 0.6, 0.8, 1, 1.25, 1.6, 2),
    (0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3),
    (0.9, 0.95, 1, 1.05, 1.1),
)


def ratio_ticks(ax, n_letters: int) -> None:
    """Let the horizontal axis be that of ratios, logarithmic, with as many ticks as have room.

    At its left are names of rows of so many letters.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    size = ax.xaxis.get_major_ticks(1)[0].label1.get_size() / POINTS
    width = ax.get_position(original=True).width * ax.figure.bbox.width / ax.figure.dpi
    width = max(_COLUMN * width - size * n_letters / 2 - _SIDE, _HANDLE)
    low, high = ax.get_xlim()
    ticks: list[float] = [1]
    for ratios in _RATIOS:
        held = [ratio for ratio in ratios if low <= ratio <= high]
        longest = max((len(f"{ratio:g}") for ratio in held), default=0)
        label = _DIGIT * size * (longest - 0.5) + _TICKS_APART
        room = np.diff(np.log(held)) * width / np.log(high / low)
        if len(held) > len(ticks) and (room >= label).all():
            ticks = held
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


def head_rows(ax, name) -> None:
    """Draw the legend of rows of markers below them, and a title, if there is a name."""
    legend_below(ax)
    if name:
        set_title(ax, as_label(name, 40), pad=30)


def write_pvalues(ax, pvalues, rejected, **emphasis) -> list:
    """Write p-values right of the rows, with emphasis on rejections; NaN is left out."""
    place = {"transform": ax.get_yaxis_transform(), "verticalalignment": "center"}
    texts = []
    for row, (pvalue, reject) in enumerate(zip(pvalues, rejected, strict=True)):
        if not np.isnan(pvalue):
            look = {"color": ORANGE, **emphasis} if reject else {"color": ink(ax)}
            text = f"p = {pvalue:.3g}{' *' if reject else ''}"
            texts.append(ax.text(1.02, row, text, fontsize="medium", **look, **place))
    return texts


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
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # it settles in the second pass
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
