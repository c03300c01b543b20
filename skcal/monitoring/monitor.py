"""Watch a model in production: evidence of miscalibration that may be read at any time."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from skcal._groups import weights_within_groups
from skcal._labels import refuse_another_order
from skcal._show import html_list, html_result, import_pandas
from skcal._sklearn_compat import Interval, _num_samples
from skcal.exceptions import InputError
from skcal.monitoring.bets import Batch
from skcal.monitoring.evidence import Estimate, Evidence, add_bets, as_e_value
from skcal.monitoring.history import N_MOMENTS, History, Period
from skcal.monitoring.layout import Layout, dumped, loaded, read_batch, read_sums, read_unknown
from skcal.monitoring.planning import MonitorPlan, Outlook, condensed, log_prior_of
from skcal.monitoring.status import (
    CHANCE,
    Entry,
    FoundByNow,
    cause,
    facts,
    summary,
    threshold,
)
from skcal.sample import HoldsNotion, Sample
from skcal.table import CalibrationTable

_FIRST_STAGE, _LAST_STAGE = 200, 10_000  # samples of a batch that are bet on together
_MOST_NOTED, _LONGEST_NOTE = 200, 500  # of the journal


class CalibrationMonitor(HoldsNotion, BaseEstimator):
    """Watch whether predictions stay calibrated, with an alarm that is rarely false.

    Outcomes arrive in batches. Bets against the predictions are paid out at fair odds; the wealth
    of the bets is an e-value. If the predictions are calibrated, it ever reaches 1 / ``alpha`` with
    a probability of at most ``alpha``, however often you look. New bets begin with every batch, so
    that the monitor also finds a model that was calibrated and no longer is. ``print(monitor)``
    says whether there is an alarm, since about when predictions have been off, what was observed
    and predicted since then, and without an alarm how large a drift would have been found.

    Parameters
    ----------
    notion : str or callable, default="auto"
        The kind of calibration to watch: "binary", "confidence", "top-label", "classwise",
        "canonical", "top-K" or a lens. "auto" is "binary" for one and two columns and "confidence"
        for more.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class). None: the
        labels of the first batch. Pass them if the first batch may lack a class, unless labels are
        the column numbers.
    alpha : float in (0, 1), default=0.05
        The largest probability of a false alarm over all time. Limits hold at all times with
        probability 1 - ``alpha``.
    run_length : float > 0, default=None
        If given, the e-detector raises the alarm instead: without a change the alarm comes after
        this many samples or more *on average*, and surely at some time. It needs less evidence
        after a long calibrated time than the alarm at ``alpha``.

    Attributes
    ----------
    e_value_ : float ≥ 0
        Evidence against calibration since the last acknowledgement, 1 before any sample. It is
        infinite once an outcome has happened whose predicted probability is 0.
    log_e_value_ : float
        The logarithm of ``e_value_``.
    alarm_ : int or None
        ``n_samples_seen_`` at the last alarm.
    acknowledged_ : int or None
        ``n_samples_seen_`` when that alarm was acknowledged; None if it was not.
    n_samples_seen_ : int
        Samples of positive weight since the last reset.
    detector_ : float ≥ 0
        The e-detector, in samples: if the predictions stay calibrated, it reaches c after c samples
        or more on average.
    e_values_ : dict of str to float
        The e-value of each problem of the notion, by its name. ``e_value_`` is their mean; of
        "top-label" half of it is that of all samples together.
    periods_ : dict of str to Period
        Observed and predicted events of "all" samples, of the "recent" ones and, after an alarm, of
        the most likely "drift". If that has clearly ended, those "since_drift" are there too: since
        the last change. "later_1", "later_2", … are between, if there were more changes. The recent
        period is the shortest one whose events have a variance of 25. Empty if the notion has a
        problem for each class.
    found_by_now_ : list of FoundByNow
        Without an alarm, the drifts over the recent period and over all samples that would have
        been found in 8 of 10 cases.
    estimates_ : dict of str to Estimate
        For each problem ``bias``, observed minus predicted probability of the positive or the most
        probable class over all samples, with limits ``bias_low`` and ``bias_high``, and
        ``rms_error_low``, a lower limit of the RMS calibration error. The limits of a bias exclude
        0 only if the e-value raised an alarm.
    journal_ : tuple of Entry
        The last 200 alarms, acknowledgements, resets and merges.
    notion_ : str
        What "auto" means for these predictions.
    classes_ : ndarray of shape (n_classes,)

    See Also
    --------
    skcal.displays.MonitorDisplay, merge_e_values, e_benjamini_hochberg
    skcal.hypothesis_tests.calibration_test : for a sample of fixed size.

    Notes
    -----
    H0 is that an outcome has its predicted probability *given the feature of the notion and all
    that was in earlier rows and batches*. Predictions may depend on the past in any way. Pass late
    labels when they come, with the predictions that were made for them. The delay must not depend
    on the outcome, as it would if defaults are reported before repayments.

    A batch of more than some hundred samples is scored in parts, in a random order that does not
    depend on outcomes, so that the monitor learns from the first parts before the later ones. The
    predictions of a batch must not depend on its outcomes: pass smaller batches if they do.

    A :class:`~skcal.CalibrationTable` of a day, or of an engine, is bet on cell by cell at the mean
    of the predictions of each. These bets win no more than the same bets on its samples, so that
    false alarms are as rare. "canonical", "top-K" and lenses need rows, as do shares of classes.

    A predicted 0 that happens is infinite evidence. If zeros are rounded, mix the predictions with
    a small share of the base rates first.

    Weights are counts, a weight of 2 being a repeated row, or at most 1. A weight below 1 makes the
    bet on the outcome smaller. Others are refused. Counts of events are sums of weights.

    The problems of "classwise" share samples in an unknown way, so that their e-values are
    averaged: the alarm needs one class that is evidently miscalibrated. Watch "canonical" for what
    goes wrong in all classes a little.

    Three quarters of the e-value are what these bets have won, one quarter is evidence of a bias
    of all samples. The limits of the bias are made of that quarter, so that limits and alarm agree.

    Of 80 calibrated streams of 10,000 samples, in batches of 1 to 1,000, at most 2 had an alarm at
    ``alpha=0.05`` in each of seven cells: binary predictions, uniform or of 1 % positives, and
    vectors of 2 and 10 classes by several notions. ``tests/studies/monitor_study.py`` draws them.

    A million samples in batches of 1,000 take 2 s as confidences or binary predictions, 8 s as
    vectors of 100 classes and 1 s a class for "classwise"; a batch of one takes 1 ms. The size of
    the state is constant: as JSON at most some 160 kB, 0.2 kB more a class of vectors and 4 kB more
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
    acknowledged_: int | None = None
    n_samples_seen_: int = 0
    journal_: tuple[Entry, ...] = ()
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

    def update(self, X, y=None, sample_weight=None, groups=None) -> Self:
        """Add a batch of outcomes to the evidence, and learn from it.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or CalibrationTable
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class). A table is
            a batch of any size, bet on as a whole: what the monitor learns from it helps from the
            next one on.
        y : array-like of shape (n_samples,), default=None
            Labels; None beside a table, which holds them, its weights and groups.
        sample_weight : array-like of shape (n_samples,), default=None
            Counts, or weights of at most 1.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other, such as answers to one question. Their
            weights are divided by their sum where that is above 1, so that false alarms are as rare
            whatever the dependence. Pass all samples of a group in one batch.

        Returns
        -------
        self : CalibrationMonitor

        Raises
        ------
        ValueError
            If predictions, labels, weights or groups are not valid, or columns are not those of
            earlier batches; then nothing changes.
        """
        self._validate_params()
        question = self.notion, self.labels, self._layout
        if isinstance(X, CalibrationTable):
            if not X.n_samples_seen_:
                return self
            beside = {"y": y, "sample_weight": sample_weight, "groups": groups}
            layout, sample = read_sums(X, beside, *question)
            return self._bet(layout, sample, [None])
        if y is None:
            raise InputError("y", "is missing.", "Pass labels, or a CalibrationTable alone.")
        if _is_empty(y) and _is_empty(X):
            return self
        refuse_another_order({"X": X, "sample_weight": sample_weight, "groups": groups})
        layout, sample = read_batch(X, y, sample_weight, *question)
        stages = _stages(len(sample), self.n_samples_seen_)
        if groups is not None:
            counted = np.ones(_num_samples(X)) if sample_weight is None else sample_weight
            weight = weights_within_groups(groups, np.asarray(counted, dtype=np.float64))
            if (weight != counted).any():
                sample = sample._replace(weight=weight[weight > 0])
                stages = [None]  # which do not cut a group
        return self._bet(layout, sample, stages)

    def _bet(self, layout: Layout, sample: Sample, stages: list) -> Self:
        """Bet on the stages of a sample one after the other, and learn from each."""
        # What raises in the middle, such as a lens, leaves the evidence as it was.
        watched = deepcopy(self._evidence) or layout.evidence()
        for rows in stages:
            bets: list[list] = [[]] * len(watched)
            for parts in layout.batches(sample if rows is None else sample.take(rows)):
                triples = zip(bets, watched, parts, strict=True)
                bets = [
                    add_bets(earlier, evidence.bet(part)) for earlier, evidence, part in triples
                ]
            for evidence, won in zip(watched, bets, strict=True):
                evidence.settle(won)
        if self._layout is None:
            self._begin(layout, watched)
        self._evidence = watched
        self.n_samples_seen_ += len(sample)
        return self._look()

    @property
    def _ranges(self) -> bool:
        """Whether there are bets on ranges, as in all monitors but old ones."""
        return bool(self._evidence[0].runs.size)

    def _begin(self, layout: Layout, evidence: list[Evidence]) -> None:
        """Set up a monitor without samples."""
        self._layout, self._evidence, self._history = layout, evidence, History()
        self.notion_, self.classes_ = layout.notion, layout.classes

    def _look(self, alarm: bool = False) -> Self:
        """Note the evidence, and an alarm if it suffices or another monitor has raised it."""
        log_detector, common = self._log_mean("log_detector"), self._evidence[0]
        sums, moments = common.sums_for_estimates(), common.moments
        if not self._layout.common:
            sums, moments = np.zeros_like(sums), np.zeros(N_MOMENTS)
        evidence = self.log_e_value_, log_detector
        self._history.add(self.n_samples_seen_, *evidence, sums=sums, moments=moments)
        value = evidence[0] if self.run_length is None else log_detector
        if not self._is_open and (alarm or value >= np.log(threshold(self))):
            self.alarm_, self.acknowledged_ = self.n_samples_seen_, None
            self._note("alarm")
            self.journal_ = (*self.journal_[:-1], self.journal_[-1]._replace(**cause(self)))
        return self

    @property
    def _is_open(self) -> bool:
        """Whether there is an alarm that nobody acknowledged."""
        return self.alarm_ is not None and self.acknowledged_ is None

    @property
    def _evidence_is_gone(self) -> bool:
        """Whether an alarm is open though all samples together are no evidence any more."""
        return self._is_open and self.run_length is None and self.log_e_value_ < 0

    def _note(self, what: str, note: str = "") -> None:
        """Add an entry to the journal."""
        if not isinstance(note, str) or len(note) > _LONGEST_NOTE:
            reason = f"is not text of at most {_LONGEST_NOTE} characters."
            raise InputError("note", reason, "Pass a short sentence.")
        entry = Entry(what, self.n_samples_seen_, note)
        self.journal_ = (*self.journal_, entry)[-_MOST_NOTED:]

    def acknowledge(self, note: str = ""):
        """Say that the alarm is known, and watch on: evidence begins anew with the next sample.

        The command line exits with 0 until there is another alarm. It comes where predictions stay
        off, too: then recalibrate and :meth:`reset`. Periods and estimates go on. Each
        acknowledgement allows for another false alarm with the probability ``alpha``.

        Parameters
        ----------
        note : str, default=""
            Why, for ``journal_``: at most 500 characters.

        Returns
        -------
        self : CalibrationMonitor

        Raises
        ------
        ValueError
            If there is no alarm that was not acknowledged.
        """
        if not self._is_open:
            raise ValueError("There is no alarm to acknowledge.")
        self._note("acknowledged", note)
        for evidence in self._evidence:
            evidence.begin_anew()
        self.acknowledged_ = self.n_samples_seen_
        return self

    def reset(self, note: str = ""):
        """Begin anew: no samples, no evidence, no alarm. Columns, classes and the journal stay.

        Reset a monitor after the model was recalibrated or replaced. Each reset allows for another
        false alarm with the probability ``alpha``: do not reset because of the outcomes.

        Parameters
        ----------
        note : str, default=""
            Why, for ``journal_``: at most 500 characters.

        Returns
        -------
        self : CalibrationMonitor
        """
        self._note("reset", note)
        if self._layout is not None:
            self._begin(self._layout, self._layout.evidence())
        self.alarm_ = self.acknowledged_ = None
        self.n_samples_seen_ = 0
        return self

    def merge(self, other) -> Self:
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
        if self._evidence and self._ranges != other._ranges:
            raise ValueError(
                "The monitors have different bets: one has a state of format 3. Merge their "
                "e-values with merge_e_values."
            )
        if self._layout is None:
            self._begin(other._layout, other._layout.evidence(other._ranges))
        for ours, theirs in zip(self._evidence, other._evidence, strict=True):
            ours.merge(theirs)
        self.n_samples_seen_ += other.n_samples_seen_
        self._note("merged")
        return self._look(bool(other._is_open or (other.alarm_ and not self.alarm_)))

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
        if not self.n_samples_seen_:
            return {}
        titles, shares = self._layout.titles(), self._layout.shares()
        return {
            title: Estimate(*map(float, evidence.estimate(self.alpha * share)))
            for title, evidence, share in zip(titles, self._evidence, shares, strict=True)
        }

    @property
    def periods_(self) -> dict[str, Period]:
        """Observed and predicted events of all samples, the last ones, and the drift."""
        if not self._evidence or not self._layout.common or not len(self._history.rows):
            return {}
        history, recent = self._history, self._history.recent_row()
        periods = {"all": history.between(0)}
        if recent:
            periods["recent"] = history.between(recent)
        if self.alarm_ is not None:
            first, *later = pairwise(self._drift_rows())
            periods["drift"] = history.between(*first)
            periods |= {
                f"later_{k}": history.between(*rows) for k, rows in enumerate(later[:-1], start=1)
            }
            if later:
                periods["since_drift"] = history.between(*later[-1])
        return periods

    def _drift_rows(self) -> list[int]:
        """The rows after which the drift of the last alarm began and ended, and of later changes.

        It began after what was acknowledged before. Sums over all predictions do not say when a
        drift of a range ended; where the evidence is gone, the time named by the alarm stays.
        """
        history, begun, raised, after = self._history, 0, Entry("alarm", 0), 0
        for entry in self.journal_:
            if entry.what == "alarm":
                raised, after = entry, begun
            begun = {"acknowledged": entry.n_samples, "reset": 0}.get(entry.what, begun)
        if raised.since is not None and (raised.low is not None or self._evidence_is_gone):
            return [history.row_before(raised.since), len(history.rows)]
        return history.drift_rows(raised.n_samples, after)

    @property
    def found_by_now_(self) -> list[FoundByNow]:
        """Drifts that would have raised an alarm, in the last samples and in all."""
        if self.alarm_ is not None or not self.periods_:
            return []
        outlook, would_be_found = self._outlook(self._layout), []
        share = min(1.0, float(self._evidence[0].totals[1]) / self.n_samples_seen_)  # of a vote
        for name in ("recent", "all"):
            if period := self.periods_.get(name):
                before = share * (self.n_samples_seen_ - period.n_samples)
                state = before, before * outlook.variance, CHANCE
                ratios = outlook.least_ratios(share * period.n_samples, *state)
                would_be_found.append(FoundByNow(period.n_samples, *ratios))
        return would_be_found

    def _outlook(self, layout: Layout, batch: Batch | None = None) -> Outlook:
        """Return what bets would win if the predictions of a batch, or those so far, drift."""
        if batch is None:
            common = self._evidence[0]
            points, variance = common.predicted(), common.totals[2] / max(common.totals[1], 1e-300)
        else:
            common = layout.evidence()[0]
            points, variance = condensed(batch.expected), float(batch.variance.mean())
        log_prior = log_prior_of(common, float(layout.shares()[0]), self.run_length is None)
        return Outlook(points[0], points[1], variance, log_prior, self.alpha, self.run_length)

    def plan(self, ratio, batch_size=None, *, n_before=None, X=None):
        """Say how soon a drift would be found.

        Parameters
        ----------
        ratio : float > 0
            Observed / predicted events under the drift, O/E: the log-odds of all predictions are
            off by the same amount. An event is the positive class, or that the predicted class is
            right.
        batch_size : int, default=None
            Samples between two looks; None: the mean size of the batches so far.
        n_before : int, default=None
            Calibrated samples before the drift; None: those that the monitor has seen.
        X : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Predictions as they will be; None: those that the monitor has seen.

        Returns
        -------
        plan : MonitorPlan
            ``n_batches`` and ``n_batches_90``, the batches until the alarm in half and in nine of
            ten cases; printed as a sentence.

        Raises
        ------
        ValueError
            If there are neither samples nor ``X``, the ratio cannot be, or the notion has a problem
            for each class.

        Examples
        --------
        >>> import numpy as np
        >>> from skcal.monitoring import CalibrationMonitor
        >>> p = np.random.default_rng(0).beta(1, 6, size=2000)
        >>> plan = CalibrationMonitor().plan(1.4, batch_size=200, n_before=4000, X=p)
        >>> plan.n_batches, plan.n_batches_90
        (5, 7)
        """
        if X is None and not self.n_samples_seen_:
            raise ValueError("There are no samples to plan by. Add a batch, or pass predictions X.")
        layout, batch = self._layout, None
        if X is not None:
            layout, batch = read_unknown(X, self.notion, self.labels, layout)
        if not layout.common:
            raise ValueError(
                f"notion={str(layout.notion)!r} has a problem for each class. Plan with 'binary' "
                "or 'confidence'."
            )
        if batch_size is None:
            if not self.n_samples_seen_:
                raise ValueError("There are no batches yet. Pass batch_size.")
            batch_size = max(1, round(self.n_samples_seen_ / self._history.n_batches))
        n_before = self.n_samples_seen_ if n_before is None else n_before
        outlook = self._outlook(layout, batch)
        shift, variance_before = outlook.shift_of(ratio), n_before * outlook.variance
        state = shift, batch_size, n_before, variance_before
        n_batches = [outlook.batches(*state, chance) for chance in (0.5, 0.9)]
        return MonitorPlan(ratio, batch_size, n_before, *n_batches)

    def to_frame(self):
        """Return the course of evidence and estimates as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
            At most 256 rows, each about all samples up to some batch, the last among them:
            ``n_samples``, ``e_value``, ``log_e_value``, ``detector``, ``recent_bias`` (since the
            row before), ``bias``, ``bias_low``, ``bias_high``, ``rms_error_low``. The classes of
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
        return summary(self)

    def _repr_html_(self):
        first, *others = str(self).splitlines()
        return html_result(first, html_list(others))

    def _repr_mimebundle_(self, **options):
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def to_dict(self) -> dict[str, Any]:
        """Return what the text says as plain data, which JSON holds.

        Returns
        -------
        facts : dict
            :doc:`/guide/monitoring` lists the keys. Infinite evidence is "inf".
        """
        return facts(self)

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
        return dumped(self)

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
        return loaded(cls, text)


def _is_empty(values) -> bool:
    """Whether an array-like has no rows."""
    if hasattr(values, "shape"):
        return tuple(values.shape[:1]) == (0,)
    return hasattr(values, "__len__") and not len(values)


def _stages(n_samples: int, n_seen: int) -> list:
    """Rows of a batch that are bet on together, by what all before them taught.

    A large batch is taken in a random order, which does not depend on outcomes, and in parts of at
    least 200 and at most 10,000 samples, each at most half of what came before.
    """
    sizes, left = [], n_samples
    while left > 0:
        sizes.append(
            min(left, max(_FIRST_STAGE, min((n_seen + n_samples - left) // 2, _LAST_STAGE)))
        )
        left -= sizes[-1]
    if len(sizes) < 2:
        return [None]  # all of them
    order = np.random.default_rng(n_seen).permutation(n_samples)
    return np.split(order, np.cumsum(sizes)[:-1])
