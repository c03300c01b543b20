"""A monitor that is fed with tables: its bets are fair, and nearly those on the samples."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import binom

from skcal import CalibrationTable
from skcal.monitoring import CalibrationMonitor
from skcal.monitoring.bets import Batch, tilted
from skcal.monitoring.evidence import Evidence
from skcal.notions import NOTIONS
from skcal.table import cells

SCALAR = [name for name, notion in NOTIONS.items() if notion.scalar]


def days_of(notion, n_days, rng, size=150):
    """Days of predictions in steps of 1/16, which sums hold exactly, and of wrong outcomes."""
    for _ in range(n_days):
        if notion == "binary":
            p = rng.integers(1, 16, size) / 16
            yield p, (rng.uniform(size=size) < 0.2 + 0.6 * p).astype(int)
        elif notion == "multi-label":
            p = rng.integers(1, 16, (size, 3)) / 16
            yield p, (rng.uniform(size=p.shape) < 0.2 + 0.6 * p).astype(int)
        else:
            p = rng.multinomial(13, [0.6, 0.2, 0.2], size) / 16 + 1 / 16
            truth = (0.7 * p + 0.1).cumsum(axis=1)
            yield p, (truth < rng.uniform(size=(size, 1))).sum(axis=1)


GIVEN = {
    "nothing": lambda rng: {},
    "counts": lambda rng: {"sample_weight": rng.integers(0, 4, 150)},
    "parts": lambda rng: {"sample_weight": rng.uniform(size=150)},
    "groups": lambda rng: {"groups": rng.integers(0, 60, 150)},
    "weights of groups": lambda rng: {
        "groups": rng.integers(0, 99, 150),
        "sample_weight": rng.integers(1, 3, 150),
    },
}


def fed(notion, days, options, by_table):
    monitor = CalibrationMonitor(notion)
    for (p, y), given in zip(days, options, strict=True):
        if by_table:
            labels = None if notion == "multi-label" else [0, 1] if p.ndim == 1 else [0, 1, 2]
            monitor.update(CalibrationTable(notion, labels=labels).update(y, p, **given))
        else:
            monitor.update(p, y, **given)
    return monitor


@pytest.mark.parametrize(
    ("notion", "given"),
    [*product(SCALAR, ("nothing", "weights of groups")), *product(["binary"], GIVEN)],
)
def test_equal_predictions_in_a_cell_are_bet_on_as_rows_are(notion, given, rng, monkeypatch):
    monkeypatch.setattr(
        "skcal.monitoring.bets._RANGES_FROM", np.inf
    )  # range ends may be predictions
    days = list(days_of(notion, 3, rng))
    options = [GIVEN[given](rng) for _ in days]
    rows, tables = (fed(notion, days, options, by_table) for by_table in (False, True))
    assert rows.n_samples_seen_ == tables.n_samples_seen_
    assert_allclose(tables.log_e_value_, rows.log_e_value_, rtol=1e-7, atol=1e-9)
    assert_allclose(tables.detector_, rows.detector_, rtol=1e-7)
    for one, other in zip(rows._evidence, tables._evidence, strict=True):
        for name, array in one.arrays().items():
            assert_allclose(other.arrays()[name], array, rtol=1e-7, atol=1e-8, err_msg=name)
    assert str(rows) == str(tables)
    resumed = CalibrationMonitor.from_json(tables.to_json())
    assert resumed.to_json() == tables.to_json()
    assert str(resumed) == str(tables)


def counted(p, y, **given):
    """The batch of a table, whose rows are cells."""
    table = CalibrationTable(labels=[0, 1], edges=[0, 1]).update(y, p, **given)
    sample, *_ = table._for_bets()
    return Batch.of_problem(sample.problems()[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_no_bet_on_cells_wins_more_than_on_their_samples_and_hardly_less(weighted, rng):
    """By the definition: the tilt of a cell, row by row."""
    evidence, n = Evidence(2, True), 3000
    for day in range(3):
        p = np.concatenate([rng.beta(0.5, 3, n), rng.uniform(0.3, 0.301, n), [0.0, 1.0]])
        y = (rng.uniform(size=len(p)) < p**1.3).astype(int)
        weight = rng.uniform(size=len(p)) if weighted else np.ones(len(p))
        batch = counted(p, y, sample_weight=weight)
        wins = np.concatenate([family.log_ratios(batch) for family in evidence.families])
        places = dict(zip(cells(batch.expected).tolist(), range(len(batch.code)), strict=False))
        row = np.array([places[cell] for cell in cells(p).tolist()])  # of the cell of each sample
        at = Batch(batch.proba[row], y, batch.target[row], weight)
        of_samples = np.column_stack([1 - p, p])
        k = 0
        for family in evidence.families:
            for tilt in range(family.n_tilts):
                if tilt % 9 == 0:
                    psi = np.broadcast_to(family.tilt(at, tilt), of_samples.shape)
                    law = of_samples * np.exp(psi)
                    law /= law.sum(axis=1, keepdims=True)
                    happened = at.of_column(law, y) / at.of_column(of_samples, y)
                    won = weight @ np.log(happened)
                    assert wins[k + tilt] <= won + 1e-7
                    assert wins[k + tilt] >= won - 2e-3, type(family)
            k += family.n_tilts
        residual = y - p
        [bias, squares], errors = evidence.bet(batch)[2:4]
        assert_allclose([bias, squares], [weight @ residual, weight @ residual**2], rtol=1e-9)
        if day:  # the terms of the error by rows, with the gap of the cell
            best = int(np.argmax(evidence.log_prior + evidence.log_wealth))
            family = int(np.searchsorted(evidence.ends, best, side="right"))
            place = best - evidence.ends[family] + evidence.families[family].n_tilts
            gap = (tilted(at, evidence.families[family].tilt(at, place)) - at.proba)[:, 1]
            terms = 2 * residual * gap - gap**2  # the largest scale shrinks no gap
            expected = [weight @ terms, weight @ terms**2]
            assert_allclose(errors[:, -1], expected, rtol=1e-6, atol=1e-6)
        evidence.settle(evidence.bet(batch))


@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 0.25, 1.0]])
def test_the_mean_over_all_outcomes_is_at_most_1(weight, monkeypatch):
    """Two tables of four predictions, three of them different ones in one cell."""
    monkeypatch.setattr("skcal.monitoring.bets._RANGES_FROM", 3.0)
    p = np.array([0.3003, 0.3005, 0.3007, 0.0])
    assert len(np.unique(cells(p))) == 2
    w = np.ones(4) if weight is None else np.array(weight, dtype=float)
    means = np.zeros(2)
    for codes in product((0, 1), repeat=6):
        evidence, probability = Evidence(2, True), 1.0
        for y in np.append(np.reshape(codes, (2, 3)), np.zeros((2, 1)), axis=1):
            happened = np.where(y == 1, p, 1 - p)
            probability *= happened.prod()
            evidence.settle(evidence.bet(counted(p, y.astype(int), sample_weight=w)))
        means += probability * np.exp([evidence.log_wealth_of_bets, evidence.log_e_value])
    if weight is None:
        assert 1 - 1e-5 < means[0] <= 1 + 1e-12
    assert (means <= 1 + 1e-12).all()


def calibrated_days(cell, rng, n_days, size):
    """Tables of calibrated predictions of some kind."""
    for _ in range(n_days):
        given, q = {}, None
        if cell == "rare":
            p = expit(rng.normal(-6, 1, size))
        elif cell == "atoms":
            p = rng.integers(0, 11, size) / 10
        elif cell == "one value":
            p = np.full(size, 0.1)
        else:
            p = rng.uniform(size=size)
        if cell == "groups":  # the samples of a group have one prediction and one outcome
            group = np.arange(size) // 5
            p, given["groups"] = p[group], group
            q = rng.uniform(size=size)[group]
        if cell == "weights":
            given["sample_weight"] = rng.uniform(size=size)
        y = ((rng.uniform(size=size) if q is None else q) < p).astype(int)
        yield CalibrationTable(labels=[0, 1]).update(y, p, **given)


CALIBRATED = ["rare", "atoms", "one value", "uniform", "groups", "weights"]


def false_alarms(cell, n_streams, n_days, size):
    alarms = 0
    for seed in range(n_streams):
        rng = np.random.default_rng([seed, CALIBRATED.index(cell)])
        monitor = CalibrationMonitor()
        for table in calibrated_days(cell, rng, n_days, size):
            monitor.update(table)
        alarms += monitor.alarm_ is not None
    return alarms


def test_alarms_on_calibrated_tables_are_rare():
    # More than 6 of 36 at a rate of 5 % have a probability of 2e-3.
    assert sum(false_alarms(cell, 6, 4, 60) for cell in CALIBRATED) <= 6


@pytest.mark.slow
@pytest.mark.parametrize("cell", CALIBRATED)
def test_alarms_on_long_streams_of_calibrated_tables_are_rare(cell):
    assert false_alarms(cell, 400, 20, 500) <= binom.isf(1e-3, 400, 0.05)


def test_a_drift_is_found_as_from_rows(rng):
    """In the same days: the monitor learns from a table as from the rows of a day."""
    alarms = []
    for by_table in (False, True):
        days = np.random.default_rng(5)
        monitor = CalibrationMonitor(labels=[0, 1])
        while monitor.alarm_ is None:
            p = days.beta(1, 6, 1000)
            drift = 1.3 if monitor.n_samples_seen_ >= 10_000 else 1.0
            y = (days.uniform(size=1000) < drift * p / (1 - p + drift * p)).astype(int)
            monitor.update(*([CalibrationTable().update(y, p)] if by_table else [p, y]))
        alarms.append(monitor.alarm_)
        assert "the event happens more often than predicted" in str(monitor)
    assert abs(alarms[0] - alarms[1]) <= 1000


def test_tables_and_rows_may_follow_each_other(rng):
    p = rng.integers(1, 16, 100) / 16
    y = (rng.uniform(size=100) < p).astype(int)
    both = np.column_stack([1 - p, p])
    table, wide = CalibrationTable().update(y, p), CalibrationTable().update(y, both)
    swapped = CalibrationTable(pos_label=1, labels=[1, 0]).update(y, both[:, ::-1])
    found = set()
    for first, second in product([table, wide, swapped], repeat=2):
        found.add(round(CalibrationMonitor().update(first).update(second).log_e_value_, 9))
    for first in ([p, y], [both, y]):
        found.add(round(CalibrationMonitor().update(*first).update(swapped).log_e_value_, 9))
    found.add(round(CalibrationMonitor().update(wide).update(both, y).log_e_value_, 9))
    found.add(round(CalibrationMonitor().update(swapped).update(p, y).log_e_value_, 9))
    assert len(found) == 1
    monitor = CalibrationMonitor().update(table)
    assert monitor.update(CalibrationTable()) is monitor
    assert monitor.n_samples_seen_ == 100


def test_what_a_monitor_cannot_bet_on_is_refused_by_name(rng):
    p, y = rng.uniform(size=20), np.arange(20) % 2
    table = CalibrationTable().update(y, p)
    cases = {
        "y is given beside a CalibrationTable": lambda m: m.update(table, y),
        "groups is given beside a CalibrationTable": lambda m: m.update(table, groups=y),
        "y is missing": lambda m: m.update(p),
        "y holds shares|X holds shares": lambda m: m.update(
            CalibrationTable().update(np.column_stack([1 - p, p]), p)
        ),
        "X counts the classes 0, 1, not 1, 2": lambda m: CalibrationMonitor(labels=[1, 2]).update(
            table
        ),
        "and the CalibrationTable counts 'binary'": lambda m: CalibrationMonitor(
            "canonical"
        ).update(table),
        "sample_weight of the CalibrationTable": lambda m: m.update(
            CalibrationTable().update(y, p, sample_weight=np.full(20, 1.5))
        ),
    }
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call(CalibrationMonitor())


def test_weights_of_a_table_are_known_to_be_counts_or_parts(rng):
    pytest.importorskip("pandas")
    p, y = rng.integers(1, 5, 40) / 8, np.arange(40) % 2
    weights = {
        "counts": (rng.integers(1, 4, 40), True),
        "parts": (rng.uniform(size=40), True),
        "others": (rng.uniform(1, 2, 40), False),
        "half": (np.full(40, 0.5), True),
    }
    for name, (weight, fair) in weights.items():
        table = CalibrationTable().update(y, p, sample_weight=weight)
        tables = [table, table + table, CalibrationTable.from_json(table.to_json())]
        tables.append(table + CalibrationTable().update(y, p))
        for each in tables:
            assert _takes(each) == fair, name
        # The sums of another engine show it where the weights of a cell are alike.
        frame = CalibrationTable.from_frame(table.to_frame())
        assert _takes(frame) == (name == "half"), name
        old = table.to_json().replace('"repeats"', '"earlier"')
        assert _takes(CalibrationTable.from_json(old)) == (name == "half"), name


def _takes(table):
    """Whether a monitor takes a table, or names its weights."""
    try:
        return CalibrationMonitor().update(table).n_samples_seen_ > 0
    except ValueError as error:
        if "Pass one that update() counted, of counts or of weights up to 1." not in str(error):
            raise
        return False
