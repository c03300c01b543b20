"""What it costs to ignore that samples depend, and what `groups` makes of it.

Eight designs of calibrated predictions whose samples have a latent correlation within groups, a
panel with autocorrelation, questions with several sampled answers, and seven designs whose groups
share their label. Every test, interval, bound and comparison is asked with ``groups``, of the first
40 sets without, too; what is counted is how often a test at 5 % rejects or a 95 % interval misses.
Run

    python tests/studies/groups_study.py --out groups.csv                 # resumes; three hours
    python tests/studies/groups_study.py --out groups.csv --tables OUT
"""

import warnings
from functools import cache, partial
from inspect import signature

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom, norm
from study_tools import append, command_line, kept, rows_of, write_table

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    PlugIn,
    TemperatureScaling,
    Zero,
    calibration_error_interval,
)
from skcal._scores import LossComparison, brier_losses
from skcal.displays.reliability_panel import make_panel
from skcal.hypothesis_tests import (
    calibration_test,
    compare_calibration,
    cox_test,
    equivalence_test,
    kolmogorov_smirnov_test,
    monte_carlo_test,
    scan_test,
    segment_test,
    skce_test,
)
from skcal.metrics import (
    binned_rms_error_interval,
    cox_recalibration,
    decision_curve,
    flexible_calibration_curve,
    murphy_diagram,
    validation_measures,
)
from skcal.model_selection import compare_risks
from skcal.sample import read_sample

LEVEL = 0.05
DRAWS = {"n_resamples": 99, "random_state": 0}
IGNORED = 40  # sets that are asked without groups, too


# Designs: labels, predictions and groups


def of_sizes(sizes, rng, shared=0.3, centre=0.0, slope=1.0):
    """Groups of these sizes; predictions and what they miss have a part that is the group's."""
    groups = np.repeat(np.arange(len(sizes)), sizes)

    def latent(share):
        common, own = rng.normal(size=len(sizes))[groups], rng.normal(size=len(groups))
        return np.sqrt(share) * common + np.sqrt(1 - share) * own

    z = latent(0.5) + centre
    return (latent(shared) < z).astype(int), norm.cdf(slope * z), groups


def lognormal(rng):
    return of_sizes(np.ceil(20 * rng.lognormal(size=20)).astype(int), rng)


def panel(rng, n_units=40, n_times=15, correlation=0.8):
    """What predictions miss follows an autoregression over the times of a unit."""
    noise = rng.normal(size=(n_units, n_times))
    for time in range(1, n_times):
        fresh = np.sqrt(1 - correlation**2) * noise[:, time]
        noise[:, time] = correlation * noise[:, time - 1] + fresh
    z = rng.normal(size=(n_units, 1)) / 2 + rng.normal(size=(n_units, n_times))
    groups = np.repeat(np.arange(n_units), n_times)
    return (noise < z).astype(int).ravel(), norm.cdf(z).ravel(), groups


def answers(rng, n_questions=80, n_answers=8):
    """Sampled answers are right or wrong together; confidences are nearly those of the question."""
    groups = np.repeat(np.arange(n_questions), n_answers)
    known = rng.normal(size=n_questions)[groups]
    z = known + 0.3 * rng.normal(size=len(groups)) + 0.5
    miss = np.sqrt(0.6) * rng.normal(size=n_questions)[groups]
    miss = miss + np.sqrt(0.4) * rng.normal(size=len(groups))
    return (miss < z).astype(int), norm.cdf(z), groups


def shared_labels(rng, sizes, a=1, b=9, spread=0.0):
    """One label a group, such as images of one patient; predictions are those of the group.

    With a spread each sample knows something else, and is calibrated by itself.
    """
    sizes = sizes(rng) if callable(sizes) else np.array(sizes)
    groups, rate = np.repeat(np.arange(len(sizes)), sizes), rng.beta(a, b, len(sizes))
    label = (rng.random(len(sizes)) < rate)[groups].astype(int)
    if not spread:
        return label, rate[groups], groups
    # P(label = 1 | seen), where seen is normal around the label and all rates are a / (a + b).
    label = (rng.random(len(sizes)) < a / (a + b))[groups].astype(int)
    seen = label + spread * rng.normal(size=len(groups))
    return label, expit(logit(a / (a + b)) + (seen - 0.5) / spread**2), groups


def of_visits(rng):
    return np.maximum(1, rng.lognormal(2, 1, 100).astype(int))


SHARED = {
    "20 of 20, 10 % events": partial(shared_labels, sizes=[20] * 20),
    "50 of 20, 10 % events": partial(shared_labels, sizes=[20] * 50),
    "100 of lognormal sizes, 10 % events": partial(shared_labels, sizes=of_visits),
    "300 of 10, 10 % events": partial(shared_labels, sizes=[10] * 300),
    "30 of 10, 50 % events": partial(shared_labels, sizes=[10] * 30, a=2, b=2),
    "100, one holds half, 30 % events": partial(shared_labels, sizes=[495] + [5] * 99, a=3, b=7),
    "100 of 10, each knows another part": partial(shared_labels, sizes=[10] * 100, spread=1.5),
}
DESIGNS = {
    "10 of 20": partial(of_sizes, [20] * 10),
    "60 of 20": partial(of_sizes, [20] * 60),
    "300 of 20": partial(of_sizes, [20] * 300),
    "20 of lognormal sizes": lognormal,
    "10, one holds half": partial(of_sizes, [180] + [20] * 9),
    "300, one holds half": partial(of_sizes, [1495] + [5] * 299),
    "60 of 20, a dozen events": partial(of_sizes, [20] * 60, centre=-2.9),
    "40 of 10, 275 alone": partial(of_sizes, [10] * 40 + [1] * 275),
    "panel of 40 units, 15 times": panel,
    "80 questions, 8 answers": answers,
    **SHARED,
}
#: Predictions that are too extreme, whose rejections are power.
POWER = {
    "power: 20 of 20, independent": partial(of_sizes, [20] * 20, shared=0.0, slope=1.5),
    "power: 20 of 20": partial(of_sizes, [20] * 20, slope=1.5),
    "power: 60 of 20": partial(of_sizes, [20] * 60, slope=1.5),
}


# Whether a test rejects, or an interval misses


def rejects(test, y, p, groups, **options):
    return test(y, p, groups=groups, **options).pvalue <= LEVEL


def rejects_segments(y, p, groups):
    features = {"prediction": p, "feature": np.arange(len(y)) % 3}
    return segment_test(y, p, features, groups=groups, order=1, **DRAWS).pvalue <= LEVEL


TESTS = {
    "ECE": partial(rejects, monte_carlo_test, **DRAWS),
    "cutoff error": partial(rejects, kolmogorov_smirnov_test, statistic="kuiper", **DRAWS),
    "SKCE": partial(rejects, skce_test, **DRAWS),
    "calibration_test": partial(rejects, calibration_test, **DRAWS),
    "scan_test": partial(rejects, scan_test, **DRAWS),
    "segment_test": rejects_segments,
    "cox_test": partial(rejects, cox_test),
}


def outside(interval, truth):
    return not interval[0] <= truth <= interval[1]


def leaves_out(truth, low, high):
    return (truth < low) | (truth > high)


def misses_squared_error(y, p, groups):
    interval = binned_rms_error_interval(y, p, groups=groups, root=False)
    return outside((interval.low, interval.high), 0)


def exceeds_upper_bound(y, p, groups):
    """Predictions p² of chances p: given the predictions the error is the mean of p - p²."""
    high = equivalence_test(y, p**2, limit=0.05, error="cutoff", groups=groups).high
    return high < np.mean(p - p**2)


def error_at_most(y, p, groups):
    """The same predictions as for the cutoff error."""
    return calibration_error_interval(y, p**2, groups=groups).high < np.mean(p - p**2)


def claims_an_error(y, p, groups):
    functions = [Zero(), PlugIn(TemperatureScaling()), Binning(10)]
    search = CalibrationErrorSearchCV(functions, cv=5, random_state=0).fit(p, y, groups=groups)
    return search.lower_confidence_bound(1 - LEVEL) > 0


def band_leaves_out_the_diagonal(y, p, groups):
    """The band of all bins of a reliability diagram, at the mean predictions of the bins."""
    [problem] = read_sample(y, p, groups=groups).problems()
    panel = make_panel("", problem, level=1 - LEVEL)
    return leaves_out(panel.prediction, panel.band_low, panel.band_high).any()


def band_leaves_out_calibration(y, p, groups):
    """The band of a curve of splines."""
    curve = flexible_calibration_curve(y, p, groups=groups)
    return leaves_out(curve.prediction, curve.band_low, curve.band_high).any()


INTERVALS = {
    "squared error": misses_squared_error,
    "slope": lambda y, p, groups: outside(cox_recalibration(y, p, groups=groups).slope_interval, 1),
    "in the large": lambda y, p, groups: outside(
        cox_recalibration(y, p, groups=groups).intercept_in_the_large_interval, 0
    ),
    "cutoff error, at most": exceeds_upper_bound,
    "calibration error, at least": lambda y, p, groups: (
        calibration_error_interval(y, p, groups=groups).low > 0
    ),
    "calibration error, at most": error_at_most,
    "band of a diagram": band_leaves_out_the_diagonal,
    "band of a curve": band_leaves_out_calibration,
    "ICI, at least": lambda y, p, groups: (
        validation_measures(y, p, groups=groups, **DRAWS).ici.low > 0
    ),
    "search, at least": claims_an_error,
}


def tells_equal_risks_apart(y, p, groups):
    """Two functions of which each is the other's mirror image, as the predictions are their own."""
    rng = np.random.default_rng(len(y))
    seen = rng.uniform(size=400)
    happened = (rng.uniform(size=400) < seen).astype(int)
    a = CalibrationErrorEstimator(Binning(5)).fit(seen, happened)
    b = CalibrationErrorEstimator(Binning(5)).fit(1 - seen, 1 - happened)
    return compare_risks(a, b, p, y, groups=groups).pvalue <= LEVEL


def tells_equal_errors_apart(y, p, groups):
    """Two models of which one errs upwards as the other does downwards."""
    return compare_calibration(y, p**1.5, 1 - (1 - p) ** 1.5, groups=groups).pvalue <= LEVEL


def tells_calibrated_apart(y, p, groups):
    """The model and a calibrated one that predicts the same for all."""
    flat = np.full(len(p), 0.5)
    return compare_calibration(y, p, flat, groups=groups).pvalue <= LEVEL


COMPARISONS = {
    "compare_risks": tells_equal_risks_apart,
    "compare_calibration": tells_equal_errors_apart,
    "both calibrated": tells_calibrated_apart,
}


def tells_errors_apart(y, p, groups):
    """Two models that err as far, one upwards and one downwards: the interval leaves out 0."""
    e = 0.4 * p * (1 - p)
    return compare_calibration(y, p + e, p - e, groups=groups).error_difference.is_significant


def tells_losses_apart(y, p, groups):
    """The Brier losses of two such models."""
    sample, e = read_sample(y, p, groups=groups), 0.3 * p * (1 - p)
    proba = [np.column_stack([1 - q, q]) for q in (p + e, p - e)]
    compared = LossComparison.of_predictions(
        brier_losses, proba, (y, y), sample.weight, sample.groups
    )
    return compared.pvalue <= LEVEL


# Curves of decisions, whose truth is a mean over the predictions of 400 data sets


@cache
def many_predictions(design):
    rng = np.random.default_rng(12345)
    return np.concatenate([DESIGNS[design](rng)[1] for _ in range(400)])


def thresholds_of(x):
    """Thresholds that at least one in fifty predictions reaches."""
    return THRESHOLDS[np.quantile(x, 0.98) > THRESHOLDS]


def scores_of(x, q, t):
    """Mean elementary scores of predictions q of the chances x."""
    return np.array([np.mean(np.where(q >= s, s * (1 - x), (1 - s) * x)) for s in t])


def band_of_net_benefits_misses(y, p, groups, x):
    t = thresholds_of(x)
    truth = np.array([np.mean((x >= s) * (x - s)) / (1 - s) for s in t])
    curve = decision_curve(y, p, thresholds=t, groups=groups)
    return leaves_out(truth, curve.band_low, curve.band_high).any()


def scores_miss(y, p, groups, x):
    """How many of the thresholds are missed."""
    t = thresholds_of(x)
    diagram = murphy_diagram(y, p, thresholds=t, groups=groups)
    return leaves_out(scores_of(x, x, t), diagram.low, diagram.high).mean()


def differences_of_scores_miss(y, p, groups, x):
    t = thresholds_of(x)
    diagram = murphy_diagram(y, p, compare=p**1.5, thresholds=t, groups=groups)
    truth = scores_of(x, x, t) - scores_of(x, x**1.5, t)
    return leaves_out(truth, diagram.low, diagram.high).mean()


THRESHOLDS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
DECISIONS = {
    "band of net benefits": band_of_net_benefits_misses,
    "Murphy scores": scores_miss,
    "differences of Murphy scores": differences_of_scores_miss,
    "difference of errors": tells_errors_apart,
    "difference of losses": tells_losses_apart,
}
NOT_SYMMETRIC = ("events", "questions", "part")
SYMMETRIC = [name for name in DESIGNS if not any(word in name for word in NOT_SYMMETRIC)]
QUESTIONS = {**TESTS, **INTERVALS, **COMPARISONS, **DECISIONS}


def asked(design, question):
    """Whether a question has a known answer for the design."""
    return question not in COMPARISONS or design in SYMMETRIC


def answer(question, design, seed):
    """Whether the answer is wrong, without and with groups; NaN where it is refused."""
    number = [*DESIGNS, *POWER].index(design)
    draw = {**DESIGNS, **POWER}[design]
    y, p, groups = draw(np.random.default_rng([seed, number]))
    found = [] if seed < IGNORED else [np.nan]
    for told in (None, groups)[len(found) :]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ask = QUESTIONS[question]
                knows = {"x": many_predictions(design)} if "x" in signature(ask).parameters else {}
                found.append(float(ask(y, p, told, **knows)))
            except ValueError:
                found.append(np.nan)
    return design, question, seed, *found


def run(path, n_sets, questions, designs):
    """Ask what a file does not hold yet."""
    done = kept(path, 3)
    cells = [
        (question, design, seed)
        for seed in range(n_sets)
        for design in designs
        for question in questions
        if (design, question, str(seed)) not in done
        and (question in TESTS if design in POWER else asked(design, question))
    ]
    append(path, ([answer(*cell)] for cell in cells))


def write_tables(path, folder):
    """Rates in per cent of the sets, with a star where they are above the 99 % binomial band."""
    rows = rows_of(path)
    for name, questions in (
        ("groups_of_tests", TESTS),
        ("groups_of_intervals", INTERVALS),
        ("groups_of_comparisons", COMPARISONS),
        ("groups_of_decisions", DECISIONS),
    ):
        table = []
        questions = [one for one in questions if any(row[1] == one for row in rows)]
        for design in [*DESIGNS, *POWER]:
            cells = [_cell(rows, design, question) for question in questions]
            if any(cells):
                table.append([design, *cells])
        if table:
            write_table(folder, name, ["groups of samples", *questions], table)


def _cell(rows, design, question):
    own = [row[3:] for row in rows if row[:2] == [design, question]]
    if not own:
        return ""
    values = np.array(own, dtype=float)
    texts = []
    for column in values.T:
        column = column[np.isfinite(column)]
        rate = f"{100 * column.mean():.0f}" if len(column) else "–"
        outside = column.sum() > binom.isf(0.005, len(column), LEVEL)
        texts.append(rate + "*" * bool(outside and design not in POWER))
    return " → ".join(texts)


def main():
    parser = command_line(__doc__)
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--questions", nargs="+", default=list(QUESTIONS), choices=QUESTIONS)
    parser.add_argument("--designs", nargs="+", default=[*DESIGNS, *POWER])
    options = parser.parse_args()
    if options.tables:
        write_tables(options.out, options.tables)
    else:
        run(options.out, options.sets, options.questions, options.designs)


if __name__ == "__main__":
    main()
