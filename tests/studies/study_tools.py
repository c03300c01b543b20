"""What the studies share: rows that are kept and resumed, tables and dot plots of a page.

A study writes its tables as CSV and its pictures as PNG into a folder, from which pages include
them, so that nobody copies a number by hand.
"""

import argparse
import csv
from itertools import chain
from pathlib import Path

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black", "0.55")


def command_line(doc, *, out=True, **options):
    """A parser of --out, where rows are kept, and --tables, where tables are written."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    if out:
        parser.add_argument("--out", type=Path, required=True, help="where rows are kept")
    parser.add_argument("--tables", type=Path, help="where tables are written", **options)
    return parser


def kept(path, n_key):
    """The first columns, as texts, of the rows that a file holds."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {tuple(row[:n_key]) for row in csv.reader(file)}


def append(path, batches):
    """Write rows as they come, so that a study resumes where it stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        for rows in batches:
            writer.writerows(rows)
            file.flush()


def rows_of(path):
    """The rows of a file, as lists of texts."""
    with path.open(newline="") as file:
        return list(csv.reader(file))


def write_table(folder, name, header, rows):
    """Write and print a table."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    widths = [max(len(str(row[k])) for row in [header, *rows]) for k in range(len(header))]
    print(f"\n{name}")
    for row in [header, *rows]:
        print("  ".join(f"{cell!s:<{width}}" for cell, width in zip(row, widths, strict=True)))


def mean_and_error(values):
    """The mean and its standard error; NaN is left out."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def mean_of_cells(by_cell):
    """The mean over cells of the means of their draws, with its standard error over the draws."""
    found = [mean_and_error(values) for values in by_cell.values() if np.isfinite(values).any()]
    if not found:
        return np.nan, np.nan
    means, errors = np.transpose(found)
    return means.mean(), np.sqrt(np.sum(errors**2)) / len(means)


def means_of_column(column):
    """Texts of :func:`mean_of_cells`, with a star where fewer draws than elsewhere had a result."""
    draws = {name: np.isfinite([*chain(*cells.values())]).sum() for name, cells in column.items()}
    most = max(draws.values(), default=0)
    texts = {}
    for name, by_cell in column.items():
        mean, error = mean_of_cells(by_cell)
        spread = f" ± {error:.1f}" if np.isfinite(error) else ""
        texts[name] = f"{mean:.1f}{spread}" + "*" * bool(draws[name] < most)
    return texts


def dots(ax, names, series, ticks=None, *, spread=0.5):
    """Draw rows of dots with error bars, the first name at the top.

    ``series`` maps labels to pairs (values, standard errors) with an entry for each name; ``ticks``
    likewise to values alone, which are drawn as upright bars.
    """
    places = np.arange(len(names))
    offsets = np.linspace(-spread / 2, spread / 2, len(series)) if len(series) > 1 else [0.0]
    for (label, pair), offset, colour in zip(series.items(), offsets, COLOURS, strict=False):
        values, errors = (np.array(part, float) for part in pair)
        style = {"fmt": "o", "color": colour, "markersize": 4.5, "elinewidth": 1.2}
        ax.errorbar(values, places + offset, xerr=errors, label=label, **style)
    for (label, values), colour in zip((ticks or {}).items(), ("black", "0.55"), strict=False):
        values = np.array(values, float)
        ax.plot(values, places, "|", color=colour, markersize=17, mew=1.8, label=label)
    ax.set_yticks(places, names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)


def draw_errors(panels, names, size, folder, title):
    """Draw mean absolute errors of names, a panel for each group.

    ``panels`` maps groups to sizes of samples, and these to the mean and error of each name. The
    lower axes are logarithmic, with 1, 2, 5, 10, … written out.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    drawn, axes = figure(1, len(panels), size=size)
    for ax, (group, errors) in zip(axes[0], panels.items(), strict=True):
        series = {}
        for n, by_name in errors.items():
            pairs = [by_name.get(name, (np.nan, np.nan)) for name in names]
            series[f"n = {n:,}"] = np.transpose(pairs)
        dots(ax, names, series, spread=0.3)
        ax.set(title=group, xlabel="mean absolute error × 1000", xscale="log")
        ax.set_yticklabels(names if ax is axes[0, 0] else [])
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    save(drawn, folder, title, axes[0, 0])


def save(figure, folder, name, legend_of=None, **options):
    """Write a picture for a page; the legend below it is that of an axis."""
    if legend_of is not None:
        handles = legend_of.get_legend_handles_labels()
        figure.legend(*handles, **{"loc": "outside lower center", "ncols": 3, **options})
    Path(folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(folder) / f"{name}.png", dpi=110)


def figure(*shape, size):
    """Figure and axes without a window."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
