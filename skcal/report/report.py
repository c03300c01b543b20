"""A report: numbers, of which text, HTML, JSON, a data frame and a figure are views."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import skcal.report.html as html
import skcal.report.tables as tables
from skcal._files import replacing
from skcal._show import as_json, import_pandas
from skcal.notions import Notion
from skcal.report.comparison import Comparison
from skcal.report.figure import reliability
from skcal.report.overview import verdict_of
from skcal.report.parts import LEVEL, Measures
from skcal.report.rows import all_warnings
from skcal.report.segment_audit import SegmentAudit
from skcal.report.text import as_text


@dataclass(frozen=True, eq=False)
class CalibrationReport:
    """What :func:`skcal.calibration_report` found: numbers; text, HTML and figure are views.

    Parameters
    ----------
    overall : Measures
        All samples: ``overview``, ``tuned`` (a dict for each notion, as in the command line's
        JSON), ``ece``, ``without_bins``, ``mce``, ``skce`` and ``scores`` (lists), ``sharpness``,
        ``diagram`` and ``warnings``. What the samples do not allow is None.
    groups : list of Measures
        The measures of each subgroup.
    group_pvalues : list of float or None
        The p-values of the subgroups' tests by ECE, adjusted by Holm's method.
    segments : SegmentAudit or None
        The worst segments of given features, and the p-value of all.
    comparison : Comparison or None
        The second model: ``second`` (its measures), ``estimators`` (both models under one function)
        and ``tests``.
    notion : Notion
        The notion of ECE, MCE and the figure.
    n_searched : int
        The number of samples on which tuned errors are estimated.
    settings : dict
        The options that made the report, with the seed.
    version : str
        The version of skcal that made the report.

    See Also
    --------
    skcal.calibration_report : The function that makes a report.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.report import CalibrationReport, calibration_report
    >>> data = make_tempered(400, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> report = calibration_report(data.labels, data.proba, random_state=0)
    >>> report.overall.overview.n_samples, report.overall.ece.pvalue < 0.01
    (400, True)
    >>> report.to_dict()["overall"]["ece"]["n_bins"]
    15
    """

    overall: Measures
    groups: list[Measures]
    group_pvalues: list[float | None]
    segments: SegmentAudit | None
    comparison: Comparison | None
    notion: Notion
    n_searched: int
    settings: dict
    version: str

    def __str__(self):
        return as_text(self)

    def __repr__(self):
        view = self.overall.overview
        return (
            f"<CalibrationReport of {view.n_samples} predictions, {len(view.classes)} classes; "
            "print() shows it>"
        )

    def _repr_html_(self):
        return html.as_fragment(self)

    @property
    def verdict(self) -> str:
        """The answer in plain words: how far off, which way, shown or not, and what would help."""
        text = verdict_of(self.overall, self.settings)
        if self.segments is None or self.segments.pvalue > LEVEL:
            return text
        return f"{text} Some segments are miscalibrated, first {self.segments.worst[0]['name']}."

    @property
    def warnings(self) -> list[str]:
        """The caveats; those of groups and of the second model name them."""
        return all_warnings(self)

    def to_dict(self) -> dict:
        """Return dicts, lists, strings and finite numbers; None for what is not known."""
        return asdict(self)

    def to_json(self, indent: int | None = 2) -> str:
        """Return strict JSON of :meth:`to_dict`.

        Parameters
        ----------
        indent : int, default=2
            None: one line.
        """
        return as_json(self.to_dict(), indent)

    def to_frame(self):
        """Return a pandas DataFrame: a row for each number of each set of predictions.

        ``part`` is "all", "group", "second" (model) or "paired", differences of the two models.
        """
        pd = import_pandas()
        rows = tables.records(self)
        return pd.DataFrame(rows).astype(dict.fromkeys(("value", "low", "high", "pvalue"), float))

    def plot(self, ax=None, *, groups=False):
        """Draw the reliability diagram, of two models side by side.

        Parameters
        ----------
        ax : matplotlib axes or array of axes, default=None
            One a panel; None makes a figure.
        groups : bool, default=False
            Draw a panel for each subgroup instead, of more than 12 those with the largest ECE.

        Returns
        -------
        display : skcal.displays.ReliabilityDisplay
        """
        if groups and not self.groups:
            raise ValueError("groups=True, but the report has none. Make it with groups=….")
        parts = self.groups if groups else [self.overall]
        if self.comparison is not None and not groups:
            parts = [self.overall, self.comparison.second]
        return reliability(parts, self.notion, self.settings).plot(ax=ax)

    def save(self, path) -> None:
        """Write one self-contained file: HTML with the figure inside, JSON, text or a table.

        Parameters
        ----------
        path : path-like
            ``.html``, ``.json``, ``.txt``, ``.csv`` (numbers in full; text that a spreadsheet would
            evaluate gets an apostrophe) or ``.tex`` (tables for the package booktabs, of
            groups and of two models too). The same report gives the same bytes. A file of this name
            is replaced as a whole, or stays as it is if that fails.

        Raises
        ------
        ValueError
            If the ending is another.
        ImportError
            If matplotlib is missing, for HTML.
        """
        path = Path(path)
        views: dict[str, Any] = {
            ".html": html.as_page,
            ".json": type(self).to_json,
            ".txt": str,
            ".csv": tables.as_csv,
            ".tex": tables.as_latex,
        }
        if path.suffix.lower() not in views:
            raise ValueError(
                f"path={str(path)!r} has the ending {path.suffix!r}. Use one of {', '.join(views)}."
            )
        text = views[path.suffix.lower()](self).rstrip("\n") + "\n"
        with replacing(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
