"""Watching a model in production: evidence of miscalibration that may be read at any time."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skcal._groups import refuse_shared_groups
from skcal._show import (
    html_list,
    html_result,
    import_pandas,
    number,
    percent,
    printable,
)
from skcal._sklearn_compat import Interval, _num_samples
from skcal._validation import naming
from skcal.monitoring import state
from skcal.monitoring.evidence import Estimate, Evidence, History, add_bets, as_e_value
from skcal.monitoring.layout import Layout, read_batch

_FIRST_STAGE, _LAST_STAGE = 200, 10_000  # samples of a batch that are bet on together


class CalibrationMonitor(BaseEstimator):
    """Watch whether predictions are, and stay, calibrated, with an alarm that is rarely false.

    Outcomes arrive in batches. Each batch is bet on by corrections that are fixed or learned from
    earlier batches; the wealth of the bets is an e-value: if the predictions are calibrated it
    reaches 1 / ``alpha`` at *any* time with a probability of at most ``alpha``, however often one
    looks. Bets begin anew all the time, so that a model that was calibrated and is no longer is
    found, too.

    Parameters
    ----------
    notion : str or callable, default="auto"
        Which calibration is watched: "binary", "confidence", "top-label", "classwise",
        "canonical", "top-K" or a lens. "auto" is "binary" for one and two columns and "confidence"
        for more.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class). None: they
        are those of the first batch; pass them if that may lack a class, unless labels are the
        column numbers.
    alpha : float in (0, 1), default=0.05
        The largest probability of a false alarm over all time, and the error of the confidence
        sequences.
    run_length : float > 0, default=None
        If given, the alarm is that of the e-detector instead: without a change it comes after this
        many samples or more *on average*, so surely once, and it needs less evidence after a long
        calibrated time than that at ``alpha``.

    Attributes
    ----------
    e_value_ : float ≥ 0
        Evidence against calibration, 1 before any sample. Infinite once an outcome has happened
        whose predicted probability is 0.
    log_e_value_ : float
        The logarithm of ``e_value_``.
    alarm_ : int or None
        ``n_samples_seen_`` at the first alarm.
    n_samples_seen_ : int
        Samples of positive weight.
    detector_ : float ≥ 0
        The e-detector, in samples: an alarm where it reaches c comes after c samples or more on
        average, if the predictions stay calibrated.
    e_values_ : dict of str to float
        The e-value of each problem of the notion, by its name. ``e_value_`` is their mean; of
        "top-label" half of it is that of all samples together.
    estimates_ : dict of str to Estimate
        For each problem ``bias``, observed minus predicted probability of the positive or the most
        probable class over all samples, with limits ``bias_low`` and ``bias_high``, and
        ``error_low``, a lower limit of the mean squared calibration error. Limits of biases hold at
        all times with probability 1 - ``alpha`` / 2, and leave out 0 only where the e-value alarms;
        those of errors hold with probability 1 - ``alpha``.
    notion_ : str
        What "auto" means for these predictions.
    classes_ : ndarray of shape (n_classes,)

    See Also
    --------
    skcal.displays.MonitorDisplay, merge_e_values, e_benjamini_hochberg
    skcal.hypothesis_tests.monte_carlo_test : for a sample of fixed size.

    Notes
    -----
    H0 is that an outcome has its predicted probability *given the feature of the notion and all
    that was in earlier rows and batches*. Predictions may depend on the past in any way. Labels
    that come late are passed when they come, in the order of arrival, with the predictions that
    were made for them; then the delay must not depend on the outcome, as it would if defaults are
    reported before repayments.

    A batch of more than some hundred samples is bet on in parts, in a random order that sees no
    outcome, so that later parts are bet on by what earlier ones taught. Its predictions must not
    depend on outcomes of the same batch: pass smaller batches if they do.

    A predicted 0 that happens is infinite evidence. If zeros are rounded, mix the predictions with
    a small share of the base rates first.

    Weights are counts, a weight of 2 being a repeated row, or at most 1, by which a bet on the
    outcome is held back (the power w ≤ 1 of a ratio of mean 1 has a mean ≤ 1). Others are refused.

    The problems of "classwise" share samples in an unknown way, so that their e-values are
    averaged: the alarm needs one class that is evidently miscalibrated. Watch "canonical" for what
    goes wrong in all classes a little.

    Half of the e-value is what these bets have won, half is evidence of a bias alone, of which the
    limits of the bias are made: so limits and alarm agree. The lower limit of the error needs more
    samples than an alarm.

    Of 150 calibrated streams of 10,000 samples, in batches of 1 to 1,000, at most 2 had an alarm at
    ``alpha=0.05`` in each of eight cells: binary predictions, uniform or of 1 % positives, and
    vectors of 2, 10 and 100 classes by several notions. ``tests/studies/monitor_study.py`` draws
    them.

    A million samples in batches of 1,000 take 2 s as confidences or binary predictions, 8 s as
    vectors of 100 classes and 1 s a class for "classwise"; a batch of one takes 1 ms. The size of
    the state is constant: as JSON at most some 60 kB, 0.2 kB more a class of vectors and 4 kB more
    a class of "top-label" and "classwise".

    References
    ----------
    .. [1] Arnold, Henzi & Ziegel, Sequentially valid tests for forecast calibration, Ann. Appl.
       Stat. 2023.
    .. [2] Shin, Ramdas & Rinaldo, E-detectors: a nonparametric framework for sequential change
       detection, New England J. Stat. Data Sci. 2023.
    .. [3] Howard, Ramdas, McAuliffe & Sekhon, Time-uniform, nonparametric, nonasymptotic confidence
       sequences, Ann. Statist. 2021.

    Examples
    --------
    A model that is calibrated for 2,000 samples, and overconfident from then on:

    >>> from skcal.datasets import make_tempered
    >>> from skcal.monitoring import CalibrationMonitor
    >>> monitor = CalibrationMonitor(notion="confidence")
    >>> for day in range(40):
    ...     temperature = 1.0 if day < 20 else 1.5
    ...     data = make_tempered(
    ...         100, temperature=temperature, n_truth_draws=0, random_state=day
    ...     )
    ...     _ = monitor.update(data.proba, data.labels)
    >>> monitor.alarm_
    2400
    >>> resumed = CalibrationMonitor.from_json(monitor.to_json())
    >>> resumed.e_value_ == monitor.e_value_
    True
    """

    alarm_: int | None = None
    n_samples_seen_: int = 0
    _layout: Any = None  # Layout, once there are samples
    _evidence: Any = ()

    _parameter_constraints: dict = {
        "notion": [str, callable],
        "labels": ["array-like", None],
        # From the least number whose inverse is finite.
        "alpha": [Interval(Real, float(np.finfo(float).tiny), 1, closed="left")],
        "run_length": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(self, notion="auto", labels=None, alpha=0.05, *, run_length=None):
        self.notion = notion
        self.labels = labels
        self.alpha = alpha
        self.run_length = run_length

    # Watching

    def update(self, X, y, sample_weight=None, groups=None):
        """Bet on a batch of outcomes, and learn from it.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Counts, or weights of at most 1.
        groups : array-like of shape (n_samples,), default=None
            Refused where samples share a group: bets hold for samples that are independent given
            the predictions and the past. Pass one sample of each group, or test a batch by
            :func:`skcal.hypothesis_tests.calibration_test` with its groups.

        Returns
        -------
        self : CalibrationMonitor

        Raises
        ------
        ValueError
            If predictions, labels or weights are not valid, columns are not those of earlier
            batches, or samples share a group; then nothing changes.
        """
        self._validate_params()
        with naming("y"):
            if np.shape(y) == (0,) and np.shape(X)[:1] == (0,):
                return self
        layout, sample = read_batch(X, y, sample_weight, self.notion, self.labels, self._layout)
        counted = np.ones(_num_samples(X)) if sample_weight is None else np.asarray(sample_weight)
        refuse_shared_groups(
            groups,
            counted,
            "bets hold for samples that are independent of each other",
            "Pass one sample of each group, or test a batch by calibration_test(…, groups=groups).",
        )
        # What raises in the middle, such as a lens, leaves the evidence as it was.
        watched = deepcopy(self._evidence) or layout.evidence()
        for rows in _stages(len(sample.codes), self.n_samples_seen_):
            bets: list[list] = [[]] * len(watched)
            for parts in layout.batches(sample.take(rows)):
                triples = zip(bets, watched, parts, strict=True)
                bets = [
                    add_bets(earlier, evidence.bet(part)) for earlier, evidence, part in triples
                ]
            for evidence, won in zip(watched, bets, strict=True):
                evidence.settle(won)
        if self._layout is None:
            self._begin(layout, watched)
        self._evidence = watched
        self.n_samples_seen_ += len(sample.codes)
        return self._look()

    def _begin(self, layout: Layout, evidence: list[Evidence]) -> None:
        """Set up a monitor without samples."""
        self._layout, self._evidence, self._history = layout, evidence, History()
        self.notion_, self.classes_ = layout.notion, layout.classes

    def _look(self):
        """Note the evidence, and whether it suffices for an alarm."""
        log_detector, common = self._log_mean("log_detector"), self._evidence[0]
        sums = common.sums_for_estimates()
        if self._layout.notion.by_class and not self._layout.pooled:
            sums = np.zeros_like(sums)
        evidence = self.log_e_value_, log_detector
        self._history.add(self.n_samples_seen_, *evidence, sums=sums)
        value, threshold = evidence[0], -np.log(self.alpha)
        if self.run_length is not None:
            value, threshold = log_detector, np.log(self.run_length)
        if self.alarm_ is None and value >= threshold:
            self.alarm_ = self.n_samples_seen_
        return self

    def merge(self, other):
        """Add the evidence of another monitor of the same model, whose samples are others.

        Parameters
        ----------
        other : CalibrationMonitor
            A monitor with the same parameters, columns and classes, of samples that are independent
            of these given the predictions: two copies of one monitor count their common past twice.
            It is left as it is.

        Returns
        -------
        self : CalibrationMonitor
            What bets have won is the product of both, and sums add up. An alarm of either stays an
            alarm.

        Raises
        ------
        TypeError
            If it is no monitor.
        ValueError
            If parameters, columns or classes differ; then nothing is added.

        See Also
        --------
        merge_e_values : also for streams that depend on each other.
        """
        if not isinstance(other, CalibrationMonitor):
            raise TypeError(f"A CalibrationMonitor cannot merge a {type(other).__name__}.")
        for name in ("alpha", "run_length"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(f"The monitors have different {name}. Pass the same to each.")
        if other._layout is None:
            return self
        different = self._layout and self._layout.difference(other._layout)
        if different:
            raise ValueError(
                f"The monitors have different {different}. Merge those of one model and notion."
            )
        if self._layout is None:
            self._begin(other._layout, other._layout.evidence())
        for own, theirs in zip(self._evidence, other._evidence, strict=True):
            own.merge(theirs)
        self.n_samples_seen_ += other.n_samples_seen_
        if self.alarm_ is None and other.alarm_ is not None:
            self.alarm_ = self.n_samples_seen_
        return self._look()

    # Reading

    def _log_mean(self, name: str) -> float:
        """Return the logarithm of the mean over problems."""
        values = np.array([getattr(evidence, name) for evidence in self._evidence])
        return float(np.logaddexp.reduce(values + np.log(self._layout.shares())))

    @property
    def log_e_value_(self):
        """The logarithm of the evidence."""
        return self._log_mean("log_e_value") if self._evidence else 0.0

    @property
    def e_value_(self):
        """Evidence against calibration."""
        return float(as_e_value(self.log_e_value_))

    @property
    def detector_(self):
        """The e-detector."""
        return float(as_e_value(self._log_mean("log_detector"))) if self._evidence else 0.0

    @property
    def e_values_(self):
        """Evidence of each problem."""
        titles = self._layout.titles() if self._evidence else []
        values = [float(as_e_value(evidence.log_e_value)) for evidence in self._evidence]
        return dict(zip(titles, values, strict=True))

    @property
    def estimates_(self) -> dict[str, Estimate]:
        """Bias and error of each problem with their limits."""
        if not self._evidence:
            return {}
        titles, shares = self._layout.titles(), self._layout.shares()
        return {
            title: Estimate(*map(float, evidence.estimate(self.alpha * share)))
            for title, evidence, share in zip(titles, self._evidence, shares, strict=True)
        }

    def to_frame(self):
        """Return the course of evidence and estimates as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
            At most 256 rows, each about all samples up to some batch, the last among them:
            ``n_samples``, ``e_value``, ``log_e_value``, ``detector``, ``recent_bias`` (since the
            row before), ``bias``, ``bias_low``, ``bias_high``, ``error_low``. The classes of
            "classwise" have no estimate in common: NaN.
        """
        return import_pandas().DataFrame(self.history())

    def history(self) -> dict[str, np.ndarray]:
        """Return the columns of :meth:`to_frame` as arrays.

        Returns
        -------
        columns : dict of str to ndarray of shape (n_rows,)
        """
        if self._layout is None:
            return History().columns(self.alpha)
        return self._history.columns(self.alpha * self._layout.shares()[0])

    def __str__(self):
        return _summary(self)

    def _repr_html_(self):
        first, *others = str(self).splitlines()
        return html_result(first, html_list(others))

    def _repr_mimebundle_(self, **options):
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    # Keeping

    def to_json(self) -> str:
        """Return all state as JSON, from which :meth:`from_json` continues with the same numbers.

        Returns
        -------
        text : str

        Raises
        ------
        ValueError
            If the notion is a lens, or labels are neither strings nor numbers.
        """
        return state.dump(self)

    @classmethod
    def from_json(cls, text: str) -> CalibrationMonitor:
        """Restore a monitor; no code in the text is run.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        monitor : CalibrationMonitor

        Raises
        ------
        ValueError
            If the text is not the state of a monitor; says what is wrong in it.
        """
        return state.load(cls, text)


def _stages(n_samples: int, n_seen: int) -> Iterator[slice | np.ndarray]:
    """Rows of a batch that are bet on together, by what all before them taught.

    A large batch is taken in a random order, which sees no outcome, and in parts of at least 200
    and at most 10,000 samples, each at most half of what came before.
    """
    sizes, left = [], n_samples
    while left > 0:
        sizes.append(
            min(left, max(_FIRST_STAGE, min((n_seen + n_samples - left) // 2, _LAST_STAGE)))
        )
        left -= sizes[-1]
    if len(sizes) < 2:
        yield slice(None)
        return
    order = np.random.default_rng(n_seen).permutation(n_samples)
    yield from np.split(order, np.cumsum(sizes)[:-1])


def _summary(monitor) -> str:
    """Return samples, alarm, evidence and estimates as text."""
    if not monitor.e_values_:
        return f"{type(monitor).__name__}: no samples yet"
    seen = f"{monitor.n_samples_seen_:,} samples, {monitor.notion_} calibration"
    evidence = f"e-value {monitor.e_value_:.3g}, e-detector {monitor.detector_:.3g}"
    lines = [f"{seen}: {_alarm(monitor)}", evidence]
    if direction := _direction(monitor):
        lines.insert(1, direction)
    title, estimate = next(iter(monitor.estimates_.items()))
    if title in ("all", monitor.notion_):  # about all samples, not about one class
        limits = f"{estimate.bias_low:.4f} to {estimate.bias_high:.4f}"
        limits = f"{limits}, {percent(1 - monitor.alpha / 2)} at all times"
        lines.append(f"observed - predicted {estimate.bias:.4f} ({limits})")
        if monitor.alarm_ is not None and estimate.error_low > 0:
            lines.append(f"root mean squared calibration error ≥ {number(estimate.error_low**0.5)}")
    if len(monitor.e_values_) > 1:
        largest = sorted(monitor.e_values_.items(), key=lambda item: -item[1])[:3]
        shown = ", ".join(f"{title}: {value:.3g}" for title, value in largest)
        lines.append(f"largest e-values: {shown}")
    return printable("\n".join(lines))


def _alarm(monitor) -> str:
    if monitor.alarm_ is None:
        return "no alarm"
    promise = f"false with probability ≤ {percent(monitor.alpha)}"
    if monitor.run_length is not None:
        promise = f"false after {monitor.run_length:,.0f} samples or more on average"
    return f"ALARM at sample {monitor.alarm_:,}, {promise}"


def _direction(monitor) -> str | None:
    """Which way all samples are off together, or how the spread of the predictions is."""
    notion = monitor._layout.notion
    if monitor.alarm_ is None or (notion.by_class and not monitor._layout.pooled):
        return None
    estimate = next(iter(monitor.estimates_.values()))
    event = "the event happens" if notion.of_positive_class else "the predicted class is right"
    of_mean, of_slope = monitor._evidence[0].leanings
    if not estimate.bias_low <= 0 <= estimate.bias_high or abs(of_mean) >= abs(of_slope):
        return f"{event} {'more' if estimate.bias > 0 else 'less'} often than predicted"
    return f"predictions are {'too extreme' if of_slope < 0 else 'not extreme enough'}"
