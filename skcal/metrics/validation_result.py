"""The measures of a validation study, as a table, for a manuscript and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from skcal._show import (
    as_columns,
    as_csv,
    as_latex,
    html_list,
    html_result,
    html_table,
    import_pandas,
    percent,
    rounded,
    tex,
)

_OUTSIDE = "outside its interval, which leaves out what noise adds to the distances"
_PARAGRAPH = (
    "The validation sample held {n:,} predictions and {events:,} events ({prevalence} %); the "
    "model expected {expected:.1f}, O/E ratio {observed_expected_ratio}. Calibration in the large "
    "was {intercept_in_the_large} and the calibration slope {slope}. The smooth calibration curve "
    "(by {method}) was off by {ici} on average (ICI), with an E50 of {e50} and an E90 of {e90}. "
    "The C-statistic was {c_statistic}, the Brier score {brier_score} and the scaled Brier score "
    "{scaled_brier_score}. Ranges in parentheses are {level} confidence intervals."
)
MEASURE_NAMES = {
    "prevalence": "prevalence",
    "mean_prediction": "mean prediction",
    "observed_expected_ratio": "O/E ratio",
    "intercept_in_the_large": "calibration in the large",
    "slope": "calibration slope",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "c_statistic": "C-statistic",
    "brier_score": "Brier score",
    "scaled_brier_score": "scaled Brier score",
}


class Measure(NamedTuple):
    """A number with the ends of its interval."""

    estimate: float
    low: float
    high: float

    def _said(self, decimals: int = 2) -> str:
        """``0.66 (0.55 to 0.77)``."""
        estimate, low, high = (f"{value:.{decimals}f}" for value in self)
        return estimate if self.low != self.low else f"{estimate} ({low} to {high})"


@dataclass(frozen=True)
class ValidationMeasures:
    """Calibration, discrimination and overall performance of predictions of one outcome.

    Every measure is (estimate, low, high).

    Attributes
    ----------
    prevalence : Measure
        The share of positive outcomes, with its Clopper-Pearson interval.
    mean_prediction : Measure
        The mean of the predictions; no interval (NaN).
    observed_expected_ratio : Measure
        Prevalence over mean prediction, O/E; above 1 predictions are too low. Clopper-Pearson,
        given the predictions.
    intercept_in_the_large, slope : Measure
        Calibration-in-the-large and calibration slope by logistic recalibration, with profile
        likelihood intervals; 0 and 1 are calibrated.
    ici, e50, e90, emax : Measure
        Mean, median, 90 % quantile and maximum of the distance of the smooth calibration curve
        from the prediction, with basic bootstrap intervals, not below 0. Biased upwards, so that an
        interval, from which the bias is taken, may lie below its estimate.
    c_statistic : Measure
        Area under the ROC curve, with DeLong's interval on the logit scale.
    brier_score : Measure
        Mean (y - p)², with its normal interval.
    scaled_brier_score : Measure
        1 - Brier score / (prevalence (1 - prevalence)), the index of prediction accuracy.
    method : str
        What smoothed the curve.
    confidence_level : float
    n_samples, n_events : int
        The predictions, and those of them with the positive outcome.
    """

    prevalence: Measure
    mean_prediction: Measure
    observed_expected_ratio: Measure
    intercept_in_the_large: Measure
    slope: Measure
    ici: Measure
    e50: Measure
    e90: Measure
    emax: Measure
    c_statistic: Measure
    brier_score: Measure
    scaled_brier_score: Measure
    method: str
    confidence_level: float
    n_samples: int
    n_events: int

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Measure)}

    def to_frame(self):
        """Return a pandas DataFrame, a row for each measure."""
        pd = import_pandas()
        return pd.DataFrame.from_dict(self.measures, orient="index", columns=Measure._fields)

    def summary(self, format: str = "text") -> str:
        """The measures in the form that a manuscript needs.

        Parameters
        ----------
        format : {"text", "paragraph", "csv", "latex"}, default="text"
            A table in four digits, the sentences of a results section in two or three decimals, the
            numbers in full, or a ``tabular`` for the package booktabs.

        Returns
        -------
        summary : str
        """
        views = {
            "text": self.__str__,
            "paragraph": self._as_paragraph,
            "csv": self._as_csv,
            "latex": self._as_latex,
        }
        if format not in views:
            raise ValueError(f"format={format!r} is unknown. Use one of {', '.join(views)}.")
        return views[format]()

    def _as_paragraph(self) -> str:
        fine = {"ici", "e50", "e90", "emax", "brier_score"}
        said = {name: one._said(3 if name in fine else 2) for name, one in self.measures.items()}
        said["prevalence"] = f"{100 * self.prevalence.estimate:.1f}"
        return _PARAGRAPH.format(
            **said,
            n=self.n_samples,
            events=self.n_events,
            expected=self.n_samples * self.mean_prediction.estimate,
            method=self.method,
            level=percent(self.confidence_level),
        )

    def _as_csv(self) -> str:
        records = [
            {"measure": name} | {end: None if x != x else x for end, x in one._asdict().items()}
            for name, one in self.measures.items()
        ]
        return as_csv(("measure", *Measure._fields), records)

    def _as_latex(self) -> str:
        title, said, _, _ = self._shown()
        rows = [(tex(MEASURE_NAMES[name]), *_cells(one)) for name, one in self.measures.items()]
        columns = ("measure", "estimate", tex(f"{percent(self.confidence_level)} interval"))
        return as_latex(f"{title}; {said}", "lrr", columns, rows)

    def _shown(self):
        title = f"Validation of {self.n_samples:,} predictions, {self.n_events:,} events"
        said = f"{percent(self.confidence_level)} intervals; curve by {self.method}"
        rows = [(MEASURE_NAMES[name], *value) for name, value in self.measures.items()]
        return title, said, ("measure", *Measure._fields), rows

    def _notes(self) -> list[str]:
        outside = [
            MEASURE_NAMES[name] for name, one in self.measures.items() if one.estimate > one.high
        ]
        return [f"{', '.join(outside)}: {_OUTSIDE}"] if outside else []

    def __str__(self):
        title, said, columns, rows = self._shown()
        cells = [[rounded(cell) for cell in row] for row in (columns, *rows)]
        return "\n".join([f"{title}; {said}", "", *as_columns(cells), *self._notes()])

    def _repr_html_(self):
        title, said, columns, rows = self._shown()
        notes = html_list([said, *self._notes()])
        return html_result(title, html_table(columns, rows), notes)


def _cells(measure: Measure) -> tuple[str, str]:
    if measure.low != measure.low:
        return f"{measure.estimate:.3f}", ""
    return f"{measure.estimate:.3f}", f"{measure.low:.3f} to {measure.high:.3f}"
