"""Which segments of the samples are miscalibrated: one test of all, with family-wise p-values."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcal._show import as_columns, html_result, html_table, import_pandas, number
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import InputError, check_proba, check_weight
from skcal.hypothesis_tests.result import CalibrationTestResult, warn_if_few
from skcal.hypothesis_tests.segment_features import make_segments
from skcal.hypothesis_tests.segment_statistics import Bias, BinnedError, Segment, step_down
from skcal.sample import read_sample

_FORMS = {"bias": Bias, "ece": BinnedError}
_METHODS = {"bias": "standardised bias", "ece": "standardised ECE"}
_SHOWN = 5  # of the segments in the text


@dataclass(frozen=True, eq=False)
class SegmentTestResult(CalibrationTestResult):
    """Result of :func:`~skcal.hypothesis_tests.segment_test`, beside what every test returns.

    Attributes
    ----------
    statistic : float
        The largest statistic of all segments.
    pvalue : float
        The p-value of the hypothesis that no segment is miscalibrated.
    segments : list of Segment
        The worst one first.
    n_left_out : int
        Segments with fewer than ``min_samples`` samples, which are not tested.
    null_distribution : ndarray of shape (n_resamples,) or None
        The largest statistic of redrawn outcomes; None for the notion "classwise".
    """

    segments: list[Segment] = field(default_factory=list, repr=False)
    n_left_out: int = 0

    def to_frame(self):
        """Return the segments as a pandas data frame, a row each."""
        return import_pandas().DataFrame(self.segments, columns=Segment._fields)

    def _repr_html_(self):
        facts = html_table(("", ""), self._shown())
        return html_result(type(self).__name__, facts, html_table(Segment._fields, self.segments))

    def __str__(self):
        head = f"{self.method}; notion {self.notion}; {len(self.segments)} segments"
        if self.n_left_out:
            head += f", {self.n_left_out} too small to be tested"
        if len(self.segments) > _SHOWN:
            head += f", the worst {_SHOWN} below"
        titles = ["segment", "outcome", "samples", "predicted", "observed", "p-value"]
        rows = [
            [
                one.name,
                one.outcome,
                str(one.n_samples),
                number(one.predicted),
                f"{number(one.observed)} ({number(one.low)} to {number(one.high)})",
                f"{one.pvalue:.2g}",
            ]
            for one in self.segments[:_SHOWN]
        ]
        return "\n".join([head, f"p-value  {self.pvalue:.2g}", "", *as_columns([titles, *rows])])


@validate_params(
    {
        "statistic": [StrOptions({"bias", "ece"})],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "min_samples": [Interval(Integral, 1, None, closed="left")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    },
    prefer_skip_nested_validation=True,
)
def segment_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    features: Any,
    *,
    statistic: str = "bias",
    notion: Any = "auto",
    n_bins: int = 4,
    order: int = 2,
    min_samples: int = 20,
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> SegmentTestResult:
    """Test calibration in all segments that features make, and name those where it fails.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    features : data frame, arrow table, dict of columns, or array-like
        Shape (n_samples, n_features). Strings and categories make a segment each, numbers quantile
        ranges, booleans one segment of those where they are true; missing values make one too.
        They need not be those that the model has seen.
    statistic : {"bias", "ece"}, default="bias"
        "bias": the absolute value of observed minus predicted in the segment, in standard
        deviations, of several classes that of the worst. "ece": the expected calibration error
        within the segment, of 10 bins of equal width for single probabilities, of all samples for
        vectors, in standard deviations above what calibration leads to; it sees errors that cancel
        within the segment.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. Of "top-label" every
        predicted class has its segments.
    n_bins : int ≥ 2, default=4
        Quantile ranges of a column of numbers; one with no more distinct values has a segment a
        value.
    order : {1, 2}, default=2
        1: segments of single features; 2: also the intersections of two.
    min_samples : int, default=20
        Smaller segments are left out, and their number is told.
    n_resamples : int, default=999
        p-values are multiples of 1 / (1 + n_resamples).
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Workers; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the means, kept fixed; they must not depend on the labels.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.

    Returns
    -------
    result : SegmentTestResult

    Raises
    ------
    ValueError
        If the input is not valid, or no segment has enough samples.

    See Also
    --------
    monte_carlo_test : tests calibration of all samples together.

    Notes
    -----
    H0 of a segment: the outcome of each of its samples has the predicted distribution, whatever its
    features. With N_s the weighted sum of what happened in segment s, E_s of what was predicted,
    V_s = Σ wᵢ² pᵢ (1 - pᵢ) and u_s² the mean of the squared weights,

        "bias":  T_s = abs(N_s - E_s) / √(V_s + u_s²).

    The last term, that of a single sample, keeps segments with a tiny expected number of events
    from ruling the maximum. Outcomes of all samples are redrawn from the predictions together, so
    p-values know how segments overlap. They are those of Westfall and Young's step-down maximum:
    the probability that any segment that fulfils its H0 has a p-value ≤ α is at most α at every
    sample size, for labels that are independent given the predictions. Classes of the notion
    "classwise" have no joint law: their p-values are multiplied by the number of classes.

    Time O(n_resamples × n_columns × members of all segments); memory within scikit-learn's
    ``working_memory`` beside 8 bytes a member.

    References
    ----------
    .. [1] Westfall & Young, Resampling-based multiple testing, Wiley 1993.
    .. [2] Hébert-Johnson et al., Multicalibration: calibration for the (computationally-
       identifiable) masses, ICML 2018.
    .. [3] Hoeffding, On the distribution of the number of successes in independent trials, Annals
       of Mathematical Statistics 1956.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import segment_test
    >>> rng = np.random.default_rng(0)
    >>> features = {"age": rng.integers(20, 80, 2000), "sex": rng.choice(["F", "M"], 2000)}
    >>> proba = rng.uniform(size=2000)
    >>> wrong = (features["age"] > 65) & (features["sex"] == "F")
    >>> y = rng.uniform(size=2000) < np.where(wrong, proba**2, proba)
    >>> result = segment_test(y, proba, features, random_state=0)
    >>> result.pvalue
    0.001
    >>> worst = result.segments[0]
    >>> worst.name, worst.n_samples, round(worst.predicted, 2), round(worst.observed, 2)
    ('age > 65 and sex = F', 252, 0.49, 0.32)
    """
    weight = check_weight(sample_weight, len(check_proba(y_proba, name="y_proba")))
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label)
    found = make_segments(
        features, len(weight), n_bins=n_bins, order=order, min_samples=min_samples
    )
    if not weight.all():  # their samples are not in the problems either
        found = found._replace(members=found.members[:, np.flatnonzero(weight)])
    rng = check_random_state(random_state)
    parts = _make_parts(_FORMS[statistic], sample, found, min_samples, rng)
    families = [parts] if sample.notion.joint_law else [[part] for part in parts]
    warn_if_few(n_resamples, len(families))
    tested = [step_down(family, n_resamples, rng, n_jobs) for family in families]
    segments = _describe(families, [pvalues for pvalues, _ in tested])
    return SegmentTestResult(
        statistic=max(abs(one.statistic) for one in segments),
        pvalue=segments[0].pvalue,
        estimate=np.nan,
        method=f"segments by {_METHODS[statistic]}, exact family-wise level",
        notion=str(sample.notion),
        null_distribution=tested[0][1] if sample.notion.joint_law else None,
        segments=segments,
        n_left_out=found.n_left_out + sum(part.n_left_out for part in parts),
    )


def _make_parts(form, sample, found, min_samples, rng) -> list:
    """The statistics of the problems that have segments."""
    titles = sample.notion.titles([str(label) for label in sample.classes.tolist()])
    parts = []
    for k, problem in enumerate(sample.problems()):
        own = titles[k : k + 1] if sample.notion.scalar else titles
        part = form(problem, found, own, min_samples, rng)
        if len(part.n_samples):
            parts.append(part)
    if not parts:
        reason = f"make no segment of at least {min_samples} samples of positive weight."
        raise InputError("features", reason, "Lower min_samples.")
    return parts


def _describe(families, pvalues) -> list[Segment]:
    """Segments of all families, the worst one first; p-values are adjusted for the families."""
    segments = []
    for family, own in zip(families, pvalues, strict=True):
        adjusted = iter(np.minimum(len(families) * own, 1).tolist())
        segments += [one for part in family for one in part.describe(adjusted)]
    return sorted(segments, key=lambda one: (one.pvalue, -abs(one.statistic)))
