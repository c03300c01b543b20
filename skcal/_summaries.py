"""What a fit that chose among candidates says: as text, for notebooks and as tables for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skcal import _html
from skcal._border import keeping_filters
from skcal._frames import import_pandas
from skcal._tables import as_csv, as_latex, tex
from skcal._text import as_columns


@dataclass(frozen=True, eq=False)
class Summary:
    """The candidates, what was chosen, and what that says.

    Attributes
    ----------
    heading : str
    columns : sequence of str
    rows : list of sequence of str
        A row of text for each candidate.
    chosen : int
        The row that was chosen.
    choice : list of str
        Sentences.
    facts : list of (str, str)
        Names and texts of what was found.
    records : list of dict
        The numbers of each candidate in full.
    """

    heading: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    chosen: int = -1
    choice: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    records: Sequence[dict[str, Any]] = ()

    def as_text(self) -> str:
        """The table, the choice and the facts for a terminal."""
        if not self.rows:
            return self.heading
        marks = ["  ", *("* " if k == self.chosen else "  " for k in range(len(self.rows)))]
        marked = [
            (mark + row[0], *row[1:])
            for mark, row in zip(marks, [self.columns, *self.rows], strict=True)
        ]
        choice = [mark + text for mark, text in zip(("* ", "  "), self.choice, strict=False)]
        width = max(len(name) for name, _ in self.facts) + 2
        facts = [f"{name:{width}} {text}" for name, text in self.facts]
        return "\n".join([self.heading, "", *as_columns(marked, "<<>>>"), "", *choice, *facts])

    def as_html(self) -> str:
        """The same for notebooks."""
        if not self.rows:
            return ""
        return _html.result(
            self.heading,
            _html.table(("", ""), self.facts),
            _html.table(self.columns, self.rows, self.chosen),
            _html.notes(self.choice),
        )

    def as_csv(self) -> str:
        """The numbers of the candidates in full."""
        return as_csv(tuple(self.records[0]) if self.records else (), self.records)

    def as_latex(self) -> str:
        """The table of the candidates for the package booktabs, the chosen one bold."""
        rows = [
            [rf"\textbf{{{tex(cell)}}}" if k == self.chosen and cell else tex(cell) for cell in row]
            for k, row in enumerate(self.rows)
        ]
        return as_latex(self.heading, "llrrr", [tex(name) for name in self.columns], rows)


class Summarized:
    """A fitted estimator whose ``_summary()`` is shown in several forms."""

    _set_last: str  # the attribute of a fit that has come to its end

    def _summary(self) -> Summary:
        raise NotImplementedError

    def summary(self, format: str = "text") -> str:
        """Table of the candidates, what was chosen and why, and what that says.

        Parameters
        ----------
        format : {"text", "csv", "latex"}, default="text"
            "csv" and "latex" hold the candidates alone: the numbers in full, and a ``tabular`` for
            the package booktabs, with what LaTeX would read escaped.

        Returns
        -------
        summary : str
        """
        check_is_fitted(self)
        views = {"text": Summary.as_text, "csv": Summary.as_csv, "latex": Summary.as_latex}
        if format not in views:
            raise ValueError(f"format={format!r} is unknown. Use one of {', '.join(views)}.")
        return views[format](self._summary())

    @keeping_filters()
    def to_frame(self):
        """Return a pandas data frame, a row for each candidate."""
        check_is_fitted(self)
        return import_pandas().DataFrame(self._summary().records)

    def _result_html(self) -> str:
        return self._summary().as_html() if hasattr(self, self._set_last) else ""

    def _repr_html_inner(self):
        return self._result_html() + super()._repr_html_inner()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._result_html() + bundle["text/html"]
        return bundle
