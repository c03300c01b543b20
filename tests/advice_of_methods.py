"""Advice of metrics and tests: as tests/advice_of_input.py."""

import numpy as np
from advice_of_input import GROUPS, HOT, ROWS, THREE, WEIGHT, C, N, P, Y, by_hand, ece, quietly
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import skcal
from skcal import hypothesis_tests as tests
from skcal import metrics

RIGHT = ((THREE.argmax(axis=1) == C).astype(int), THREE.max(axis=1))
FEATURES = np.column_stack([P, WEIGHT])
MODEL = LogisticRegression().fit(FEATURES, Y)


def p_of(test, *args, **kwargs):
    return quietly(test, *args, **kwargs).pvalue


def mc(*args, **kwargs):
    return p_of(tests.monte_carlo_test, *args, **{"n_resamples": 99, "random_state": 0, **kwargs})


TARGET = P[::2] ** 2


def shifted(**kwargs):
    return quietly(
        metrics.shifted_calibration_error, Y, P, **{"n_resamples": 20, **kwargs}
    ).estimate


def of_votes(rows):
    y, p, samples = np.r_[Y, np.ones(N, int)], np.r_[P, P], np.r_[:N, :N]
    options = {"target_proba": TARGET, "n_resamples": 20, "groups": samples[rows]}
    return quietly(metrics.shifted_calibration_error, y[rows], p[rows], **options).estimate


def of_covariates(**kwargs):
    options = {"shift": "covariate", "X": FEATURES, "target_X": FEATURES[::2], **kwargs}
    options["estimator"] = LogisticRegression()
    return shifted(**options)


def joint_limit(error):
    [result] = quietly(tests.equivalence_tests, [(skcal.Sample(Y, P), error)], limit=0.2)
    return result.high


METRICS = {
    "Use one of {}.": (
        lambda: joint_limit("mean"),
        lambda: joint_limit("ece"),
        lambda: quietly(tests.equivalence_test, Y, P, limit=0.2, error="ece").high,
    ),
    "Use debias=True.": (
        lambda: ece(HOT * 2 + 1, THREE, debias="labels", norm=2, notion="confidence"),
        lambda: ece(HOT, THREE, debias=True, norm=2, notion="confidence"),
        lambda: ece(*RIGHT, debias=True, norm=2),
    ),
    "debias='labels' is not for average='micro', whose bins hold several outcomes of a sample. Use "
    "debias=True.": (
        lambda: ece(C, THREE, notion="classwise", average="micro", debias="labels", norm=2),
        lambda: ece(C, THREE, notion="classwise", average="micro", debias=True, norm=2),
        lambda: ece(HOT, THREE, notion="classwise", average="micro", debias=True, norm=2),
    ),
    "notion={} is several problems or a vector. Use 'binary' or 'confidence'.": (
        lambda: metrics.cox_recalibration(C, THREE, notion="classwise"),
        lambda: metrics.cox_recalibration(C, THREE, notion="confidence").slope,
        lambda: metrics.cox_recalibration(*RIGHT).slope,
    ),
    "{} must be in increasing order. Pass np.sort({}).": (
        lambda: metrics.decision_curve(Y, P, thresholds=[0.5, 0.2]),
        lambda: metrics.decision_curve(Y, P, thresholds=np.sort([0.5, 0.2])).net_benefit[..., 0],
        lambda: metrics.net_benefit(Y, P, threshold=0.2),
    ),
    "Pass numpy.inf.": (
        lambda: ece(Y, P, norm=60),
        lambda: ece(Y, P, norm=np.inf),
        lambda: max(
            abs((Y - P)[part].mean())
            for k in range(15)
            if (part := np.minimum((P * 15).astype(int), 14) == k).any()
        ),
    ),
    "edges of {}: a 1-D array from 0 to 1 is needed. Pass [0, …, 1] with the inner edges "
    "between.": (
        lambda: ece(Y, P, edges=[0.25, 0.75]),
        lambda: ece(Y, P, edges=[0, 0.25, 0.75, 1]),
        lambda: sum(
            abs((Y - P)[(low <= P) & (high > P)].sum()) / N
            for low, high in [(0, 0.25), (0.25, 0.75), (0.75, 1)]
        ),
    ),
    "edges must increase, but edges[{}] = {} follows {}. Pass numpy.unique(edges).": (
        lambda: ece(Y, P, edges=[0, 0.5, 0.5, 1]),
        lambda: ece(Y, P, edges=np.unique([0, 0.5, 0.5, 1])),
        by_hand(Y, P, 2),
    ),
    "edges are of single probabilities, but the notion conditions on vectors. Leave edges out, or "
    "use notion='confidence', 'classwise' or 'binary'.": (
        lambda: ece(C, THREE, notion="canonical", edges=[0, 0.5, 1]),
        lambda: ece(C, THREE, notion="confidence", edges=[0, 0.5, 1]),
        by_hand(*RIGHT, 2),
    ),
    "notion={} conditions on a vector, strategy='isotonic' on one number. Pass strategy='uniform', "
    "'unique' or 'median-variance'.": (
        lambda: metrics.score_decomposition(C, THREE, notion="canonical"),
        lambda: (
            metrics.score_decomposition(
                C, THREE, notion="canonical", strategy="unique"
            ).miscalibration
        ),
        lambda: ((THREE - HOT) ** 2).sum(axis=1).mean(),
    ),
    "return_standard_error needs method='incomplete' and a notion of one problem, not method={} "
    "with notion={}. For others use bootstrap_interval.": (
        lambda: metrics.squared_kernel_calibration_error(Y, P, return_standard_error=True),
        lambda: (
            metrics.bootstrap_interval(
                metrics.squared_kernel_calibration_error, Y, P, n_resamples=19, random_state=0
            ).estimate
        ),
        lambda: metrics.squared_kernel_calibration_error(Y, P),
    ),
    "class_kernel has shape {}; pass a symmetric array of shape {}.": (
        lambda: metrics.squared_kernel_calibration_error(
            C, THREE, notion="canonical", class_kernel=np.eye(2)
        ),
        lambda: metrics.squared_kernel_calibration_error(
            C, THREE, notion="canonical", class_kernel=np.eye(3)
        ),
        lambda: metrics.squared_kernel_calibration_error(C, THREE, notion="canonical"),
    ),
    "Pass one of them: it says how the predictions are distributed.": (
        lambda: metrics.validation_sample_size(0.5),
        lambda: quietly(metrics.validation_sample_size, P.mean(), y_proba=P).slope,
        lambda: quietly(metrics.validation_sample_size, P.mean(), y_proba=np.r_[P, P]).slope,
    ),
    "Pass one of them.": (
        lambda: metrics.validation_sample_size(0.5, y_proba=P, linear_predictor=(0, 1)),
        lambda: quietly(metrics.validation_sample_size, P.mean(), y_proba=P).slope,
        lambda: quietly(metrics.validation_sample_size, P.mean(), y_proba=np.r_[P, P]).slope,
    ),
    "Pass mean and standard deviation of the log-odds, the second above 0.": (
        lambda: metrics.validation_sample_size(0.5, linear_predictor=(0, -1)),
        lambda: (
            metrics.validation_sample_size(0.5, linear_predictor=(0, 1)).observed_expected_ratio
        ),
        lambda: (
            metrics.validation_sample_size(0.5, linear_predictor=[0.0, 1.0]).observed_expected_ratio
        ),
    ),
    "Pass P(event), one number per prediction.": (
        lambda: metrics.validation_sample_size(0.5, y_proba=ROWS),
        lambda: quietly(metrics.validation_sample_size, P.mean(), y_proba=ROWS[:, 1]).slope,
        lambda: quietly(metrics.validation_sample_size, P.mean(), y_proba=np.r_[P, P]).slope,
    ),
    "The mean of the predictions is {}, but prevalence is {}. The samples for slope and net "
    "benefit "
    "assume a calibrated model, whose mean prediction is the prevalence. Pass numbers that "
    "agree.": (
        lambda: metrics.validation_sample_size(0.02, y_proba=P),
        lambda: metrics.validation_sample_size(P.mean(), y_proba=P).slope,
        lambda: metrics.validation_sample_size(P.mean(), y_proba=np.r_[P, P]).slope,
    ),
    "{} has no predict_proba, which this scorer needs. Use another classifier, or "
    "CalibratedClassifierCV around it.": (
        lambda: metrics.get_scorer("neg_expected_calibration_error")(
            RidgeClassifier().fit(FEATURES, Y), FEATURES, Y
        ),
        lambda: metrics.get_scorer("neg_expected_calibration_error")(MODEL, FEATURES, Y),
        lambda: -by_hand(Y, MODEL.predict_proba(FEATURES)[:, 1]),
    ),
    "{} is not a scorer of skcal (scikit-learn's are in sklearn.metrics). {}Use one of "
    "get_scorer_names(): {}.": (
        lambda: metrics.get_scorer("expected_calibration_error"),
        lambda: metrics.get_scorer(metrics.get_scorer_names()[0])(MODEL, FEATURES, Y) <= 0,
        True,
    ),
    "Pass booleans, or 1 and 0. Are the arguments swapped?": (
        lambda: metrics.area_under_risk_coverage(P, Y),
        lambda: [
            metrics.area_under_risk_coverage(Y, P),
            metrics.area_under_risk_coverage(Y == 1, P),
        ],
        lambda: [np.mean(np.cumsum(1 - Y[np.argsort(-P)]) / np.arange(1, N + 1))] * 2,
    ),
    "Pass one number per answer, (n_samples,).": (
        lambda: metrics.area_under_risk_coverage(Y, ROWS),
        lambda: metrics.area_under_risk_coverage(Y, ROWS[:, 1]),
        lambda: metrics.area_under_risk_coverage(Y == 1, P),
    ),
    "Pass one of each per answer.": (
        lambda: metrics.area_under_risk_coverage(Y, P[:-1]),
        lambda: metrics.area_under_risk_coverage(Y, P),
        lambda: metrics.area_under_risk_coverage(Y == 1, P),
    ),
    "Pass the predictions for the target, whose distribution tells the prevalences.": (
        lambda: metrics.shifted_calibration_error(Y, P),
        lambda: shifted(target_proba=TARGET, random_state=0),
        lambda: shifted(target_proba=TARGET[::-1], random_state=0),
    ),
    "Pass predictions of the same classes.": (
        lambda: metrics.shifted_calibration_error(Y, P, target_proba=THREE),
        lambda: shifted(target_proba=TARGET, random_state=0),
        lambda: shifted(target_proba=np.r_[TARGET, TARGET], random_state=0),
    ),
    "Leave X, target_X and estimator out, or use 'covariate'.": (
        lambda: metrics.shifted_calibration_error(
            Y, P, target_proba=TARGET, X=FEATURES, target_X=FEATURES
        ),
        lambda: shifted(target_proba=TARGET, random_state=0),
        lambda: shifted(target_proba=np.r_[TARGET, TARGET], random_state=0),
    ),
    "Pass what describes the samples, (n, n_features).": (
        lambda: metrics.shifted_calibration_error(Y, P, shift="covariate"),
        lambda: of_covariates(random_state=0),
        lambda: of_covariates(random_state=0, X=FEATURES[:, ::-1], target_X=FEATURES[::2, ::-1]),
    ),
    "Pass one row per sample.": (
        lambda: of_covariates(X=FEATURES[1:]),
        lambda: of_covariates(random_state=0),
        lambda: of_covariates(random_state=0, X=FEATURES[:, ::-1], target_X=FEATURES[::2, ::-1]),
    ),
    "Pass the same features.": (
        lambda: of_covariates(target_X=FEATURES[:, :1]),
        lambda: of_covariates(random_state=0),
        lambda: of_covariates(random_state=0, X=FEATURES[:, ::-1], target_X=FEATURES[::2, ::-1]),
    ),
    "Pass one row per target sample.": (
        lambda: of_covariates(target_proba=TARGET[1:]),
        lambda: of_covariates(random_state=0, target_proba=TARGET),
        lambda: of_covariates(random_state=0),
    ),
    "Pass a row for each vote.": (
        lambda: metrics.shifted_calibration_error(HOT + 1, THREE, target_proba=THREE),
        lambda: of_votes(slice(None)),
        lambda: of_votes(slice(None, None, -1)),
    ),
    "Pass a row for each vote, and groups= the sample of each row.": (
        lambda: metrics.validation_measures(np.column_stack([1 - Y, 1 + Y]), ROWS),
        lambda: (
            quietly(
                metrics.validation_measures,
                np.r_[Y, 1 - 0 * Y],
                np.r_[P, P],
                groups=np.r_[:N, :N],
                n_resamples=19,
            ).observed_expected_ratio.estimate
        ),
        (Y.sum() + N) / (2 * P.sum()),
    ),
    "format={} is unknown. Use one of {}.": (
        lambda: MEASURES.summary("xml"),
        lambda: str(MEASURES) == MEASURES.summary("text"),
        True,
    ),
    "function={} has no residual(X). Pass TwoStepKernelRidge, PlugIn, Binning without debias, "
    "DirichletKernelDensity or Stacking.": (
        lambda: metrics.cross_fitted_calibration_error(
            Y, P, function=skcal.Binning(debias=True), kind="l1"
        ),
        lambda: cross_fitted(P),
        lambda: cross_fitted(ROWS),
    ),
}
MEASURES = quietly(metrics.validation_measures, Y, P, n_resamples=19)


def cross_fitted(proba):
    function = skcal.Binning()
    return metrics.cross_fitted_calibration_error(
        Y, proba, notion="binary", function=function, kind="l1"
    )


TESTS = {
    "Use monte_carlo_test.": (
        lambda: tests.spiegelhalter_test(np.column_stack([3 - Y, Y]), ROWS),
        lambda: mc(Y, P),
        lambda: mc(Y, ROWS, notion="binary"),
    ),
    "Spiegelhalter's z has a variance of 0: every prediction in y_proba is 0, 0.5 or 1. Use "
    "monte_carlo_test.": (
        lambda: tests.spiegelhalter_test(Y, np.full(N, 0.5)),
        lambda: mc(Y, np.full(N, 0.5)) > 0,
        True,
    ),
    "A bin holds only predictions of 0 or 1 in y_proba, whose variance is 0. Use "
    "monte_carlo_test.": (
        lambda: tests.hosmer_lemeshow_test(
            np.r_[Y, np.ones(40, int)], np.r_[P, np.zeros(40)], external=True, min_expected=0
        ),
        lambda: mc(np.r_[Y, np.ones(40, int)], np.r_[P, np.zeros(40)]) > 0,
        True,
    ),
    "{} bins are too few with external={}. Pass more n_bins.": (
        lambda: tests.hosmer_lemeshow_test(Y, P, n_bins=3, external=False, min_expected=30),
        lambda: tests.hosmer_lemeshow_test(Y, P, n_bins=10, external=False).pvalue,
        lambda: tests.hosmer_lemeshow_test(Y, ROWS, notion="binary", external=False).pvalue,
    ),
    "y_proba expects {} positives among {} samples, and at least min_expected={} of either outcome "
    "are needed. Use monte_carlo_test.": (
        lambda: tests.hosmer_lemeshow_test(Y[:8], P[:8]),
        lambda: mc(Y[:8], P[:8]),
        lambda: mc(Y[:8], ROWS[:8], notion="binary"),
    ),
    "Use method='projection'.": (
        lambda: tests.compare_calibration(Y, P, P**2, method="skce", groups=GROUPS),
        lambda: p_of(tests.compare_calibration, Y, P, P**2, method="projection", groups=GROUPS),
        lambda: p_of(
            tests.compare_calibration, Y, P, P**2, method="projection", groups=GROUPS.astype(str)
        ),
    ),
    "method='exact' is for error='cutoff' without an interval, not error={} and interval={}. Use "
    "method='asymptotic'.": (
        lambda: tests.equivalence_test(Y, P, limit=0.1, error="ece", method="exact"),
        lambda: tests.equivalence_test(Y, P, limit=0.1, error="ece", method="asymptotic").estimate,
        lambda: tests.equivalence_test(Y, P, limit=0.2, error="ece").estimate,
    ),
    "Use method='asymptotic'.": (
        lambda: tests.equivalence_test(
            Y, P, limit=0.1, error="cutoff", method="exact", groups=GROUPS
        ),
        lambda: (
            quietly(
                tests.equivalence_test,
                *(Y, P),
                limit=0.1,
                error="cutoff",
                method="asymptotic",
                groups=GROUPS,
            ).estimate
        ),
        lambda: metrics.cutoff_calibration_error(Y, P),
    ),
    "All predictions in y_proba are 0 or 1, so that the statistic has a variance of 0, and a label "
    "contradicts them. Use monte_carlo_test.": (
        lambda: tests.kolmogorov_smirnov_test(Y, (P > 0.5).astype(float), statistic="kuiper"),
        lambda: mc(Y, (P > 0.5).astype(float)),
        0.01,
    ),
    "Use method='monte-carlo'.": (
        lambda: tests.skce_test(Y, P, method="block", groups=GROUPS),
        lambda: p_of(tests.skce_test, Y, P, method="monte-carlo", groups=GROUPS, n_resamples=99),
        lambda: p_of(tests.skce_test, Y, P, groups=GROUPS.astype(str), n_resamples=99),
    ),
    "notion={} is several problems. Use method='monte-carlo'.": (
        lambda: tests.skce_test(C, THREE, notion="classwise", method="block"),
        lambda: (
            tests.skce_test(
                C, THREE, notion="classwise", method="monte-carlo", n_resamples=99
            ).pvalue
        ),
        lambda: tests.skce_test(C, THREE, notion="classwise", n_resamples=99).pvalue,
    ),
    "method={} takes one bandwidth. Use method='monte-carlo' for several.": (
        lambda: tests.skce_test(Y, P, method="block", bandwidth=[0.1, 0.2]),
        lambda: (
            tests.skce_test(Y, P, method="monte-carlo", bandwidth=[0.1, 0.2], n_resamples=99).pvalue
        ),
        lambda: tests.skce_test(Y, P, bandwidth=(0.1, 0.2), n_resamples=99).pvalue,
    ),
    "Use 'block'.": (
        lambda: tests.skce_test(Y, P, block_size=4),
        lambda: quietly(tests.skce_test, Y, P, method="block", block_size=4).pvalue,
        lambda: (
            quietly(tests.skce_test, Y, ROWS, notion="binary", method="block", block_size=4).pvalue
        ),
    ),
    "{} groups: the smallest possible p-value of {} is {}, above 0.05. Use more groups.": (
        lambda: tests.monte_carlo_test(C, THREE, notion="classwise", groups=np.arange(N) % 6),
        lambda: mc(C, THREE, notion="classwise", groups=np.arange(N) % 12) > 0,
        True,
    ),
    "{}: the smallest possible p-value is {}, above 0.05. Use at least {}.": (
        lambda: tests.monte_carlo_test(Y, P, n_resamples=9),
        lambda: tests.monte_carlo_test(Y, P, n_resamples=19).pvalue >= 0.05,
        True,
    ),
    "No interval is known for {}. Use skcal.metrics.bootstrap_interval of a measure.": (
        lambda: tests.monte_carlo_test(Y, P, n_resamples=19).confidence_interval(),
        lambda: metrics.bootstrap_interval(ece, Y, P, n_resamples=19, random_state=0).estimate,
        by_hand(Y, P),
    ),
    "Pass coarser features, or call segment_test with a lower min_samples or n_bins.": (
        lambda: tests.segment_test(Y, P, np.arange(N).astype(str), n_resamples=99),
        lambda: (
            tests.segment_test(Y, P, (np.arange(N) // 40).astype(str), n_resamples=99).pvalue > 0
        ),
        True,
    ),
    "Pass (n_samples, n_features).": (
        lambda: tests.segment_test(Y, P, np.zeros((N, 2, 2)), n_resamples=99),
        lambda: tests.segment_test(Y, P, FEATURES, n_resamples=99).pvalue,
        lambda: tests.segment_test(Y, ROWS, FEATURES, n_resamples=99, notion="binary").pvalue,
    ),
    "Pass at least one.": (
        lambda: tests.segment_test(Y, P, {}, n_resamples=99),
        lambda: tests.segment_test(Y, P, {"w": WEIGHT}, n_resamples=99).pvalue,
        lambda: tests.segment_test(Y, P, WEIGHT, n_resamples=99).pvalue,
    ),
    "Pass a column for each of their parts.": (
        lambda: tests.segment_test(Y, P, {"w": nested()}, n_resamples=99),
        lambda: tests.segment_test(Y, P, {"p": P, "w": WEIGHT}, n_resamples=99).pvalue,
        lambda: tests.segment_test(Y, P, FEATURES, n_resamples=99).pvalue,
    ),
    "Pass numbers, strings or booleans, such as the month of a date.": (
        lambda: tests.segment_test(Y, P, np.arange(N).astype("M8[D]"), n_resamples=99),
        lambda: (
            tests.segment_test(
                Y, P, np.arange(N).astype("M8[D]").astype("M8[M]").astype(int), n_resamples=99
            ).pvalue
        ),
        lambda: tests.segment_test(Y, P, {"m": months()}, n_resamples=99).pvalue,
    ),
    "Pass one value a sample.": (
        lambda: tests.segment_test(Y, P, {"w": WEIGHT[1:]}, n_resamples=99),
        lambda: tests.segment_test(Y, P, {"w": WEIGHT}, n_resamples=99).pvalue,
        lambda: tests.segment_test(Y, P, WEIGHT, n_resamples=99).pvalue,
    ),
}


def nested():
    cells = np.empty(N, object)
    cells[:] = [[a, b] for a, b in FEATURES]
    return cells


def months():
    return np.arange(N).astype("M8[D]").astype("M8[M]").astype(int)


FEW = np.eye(60, dtype=int)[[9, 40]].sum(axis=0)  # two events
RARE = np.linspace(0.01, 0.1, 60)
CERTAIN = (np.tile([1, 0], 20), np.tile([0.0, 1.0], 20))  # predictions that are all wrong
CELLS = np.arange(N) // 20  # six groups


class OneColumn(LogisticRegression):
    """A classifier that returns P(positive class) alone."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, 1:]


def embedding(**options):
    return p_of(tests.mean_embedding_test, Y, P, method="chi2", **options)


def prevalences(y, p, **options):
    return quietly(metrics.shifted_calibration_error, y, p, n_resamples=20, **options).estimate


class LazyColumns:
    """Columns that are not read yet, as a lazy data frame has them."""

    columns = ("w",)

    def collect(self):
        return {"w": WEIGHT}


MORE = {
    "strategy={} does not fit {} feature(s) per sample. Use one of {}.": (
        lambda: ece(C, THREE, notion="canonical", strategy="quantile"),
        lambda: (
            [
                0 < ece(C, THREE, notion="canonical", strategy=strategy) < 1
                for strategy in ("uniform", "median-variance")
            ]
            + [ece(C, THREE, notion="canonical", strategy="unique")]
        ),
        lambda: [True, True, np.abs(THREE - HOT).sum(axis=1).mean() / 2],
    ),
    'Pass the step of the predictions, or "auto".': (
        lambda: tests.calibration_test(Y, P.round(1), resolution=0.15, n_resamples=99),
        lambda: [
            tests.calibration_test(Y, P.round(1), resolution=step, n_resamples=99).pvalue
            for step in (0.1, "auto")
        ],
        lambda: [p_of(tests.calibration_test, Y, P.round(1), n_resamples=99)] * 2,
    ),
    "Use {}.": (
        lambda: ece(Y, P, binning="quantile"),
        lambda: ece(y_true=Y, y_proba=P, strategy="quantile", n_bins=1),
        abs(np.mean(Y - P)),
    ),
    "Use more samples.": (
        lambda: [
            tests.compare_calibration(FEW, RARE, RARE[::-1]),
            metrics.cox_recalibration(FEW, RARE),
        ],
        lambda: [
            tests.compare_calibration(np.tile(FEW, 5), np.tile(RARE, 5), np.tile(RARE, 5)).pvalue,
            round(metrics.cox_recalibration(np.tile(FEW, 5), np.tile(RARE, 5)).slope, 6),
        ],
        lambda: [1.0, round(slope_of(np.tile(FEW, 5), np.tile(RARE, 5)), 6)],
    ),
    "Use more samples, or {}.": (
        lambda: metrics.binned_rms_error_interval(FEW, RARE),
        lambda: [
            metrics.binned_rms_error_interval(np.tile(FEW, 9), np.tile(RARE, 9)).low >= 0,
            mc(FEW, RARE) > 0,
        ],
        [True, True],
    ),
    "Pass shares in place of counts.": (
        lambda: tests.compare_calibration(VOTES, ROWS, ROWS[::-1], second_y_true=2 * VOTES),
        lambda: tests.compare_calibration(VOTES / 3, ROWS, ROWS, second_y_true=VOTES / 3).pvalue,
        1.0,
    ),
    "The covariance of the deviations at {} locations is singular, of rank {}. Pass only the "
    "locations numbered {}.": (
        lambda: embedding(locations=[0.5, 0.5, 0.2]),
        lambda: embedding(locations=np.array([0.5, 0.5, 0.2])[[0, 2]]),
        lambda: embedding(locations=[0.2, 0.5]),
    ),
    "Use method='monte-carlo', or fewer locations.": (
        lambda: tests.mean_embedding_test(Y, P, method="chi2", n_locations=5),
        lambda: [
            embedding(n_locations=1) > 0,
            p_of(tests.mean_embedding_test, Y, P, method="monte-carlo", n_resamples=99) > 0,
        ],
        [True, True],
    ),
    "Lower confidence_level, or use more groups.": (
        lambda: tests.scan_test(Y, P, groups=CELLS, confidence_level=0.999),
        lambda: [
            p_of(tests.scan_test, Y, P, groups=CELLS, confidence_level=0.9),
            p_of(tests.scan_test, Y, P, groups=GROUPS, confidence_level=0.999) > 0,
        ],
        lambda: [p_of(tests.scan_test, Y, P, groups=CELLS, confidence_level=0.95), True],
    ),
    "Pass a data frame, or collect() it.": (
        lambda: tests.segment_test(Y, P, LazyColumns(), n_resamples=99),
        lambda: tests.segment_test(Y, P, LazyColumns().collect(), n_resamples=99).pvalue,
        lambda: tests.segment_test(Y, P, WEIGHT, n_resamples=99).pvalue,
    ),
    "All blocks agree, or all predictions are certain, so the standard error is 0 and no limit "
    "holds. Use method='monte-carlo'.": (
        lambda: quietly(tests.skce_test, *CERTAIN, method="block", block_size=2),
        lambda: p_of(tests.skce_test, *CERTAIN, method="monte-carlo", n_resamples=99),
        0.01,
    ),
    "Use method='splines' or 'loess'.": (
        lambda: metrics.flexible_calibration_curve(Y, P, method="isotonic", sample_weight=WEIGHT),
        lambda: [
            metrics.flexible_calibration_curve(Y, P, method=m, sample_weight=WEIGHT).frequency
            for m in ("splines", "loess")
        ],
        lambda: [
            metrics.flexible_calibration_curve(Y, P, method=m, sample_weight=3 * WEIGHT).frequency
            for m in ("splines", "loess")
        ],
    ),
    "Predictions between 0 and 1 cannot make up for outcomes against those of exactly 0 or 1, so "
    "that no finite intercept is the most likely. Pass probabilities that are not rounded to 0 and "
    "1.": (
        lambda: metrics.cox_recalibration(Y, P.round()),
        lambda: metrics.cox_recalibration(Y, P).slope,
        lambda: slope_of(Y, P),
    ),
    "Use a classifier with a column per class.": (
        lambda: metrics.get_scorer("neg_expected_calibration_error")(
            OneColumn().fit(FEATURES, Y), FEATURES, Y
        ),
        lambda: metrics.get_scorer("neg_expected_calibration_error")(MODEL, FEATURES, Y),
        lambda: -by_hand(Y, MODEL.predict_proba(FEATURES)[:, 1]),
    ),
    "Use a model with some discrimination.": (
        lambda: metrics.shifted_calibration_error(Y, np.full(N, 0.5), target_proba=TARGET),
        lambda: shifted(target_proba=TARGET, random_state=0),
        lambda: shifted(target_proba=TARGET[::-1], random_state=0),
    ),
}
VOTES = np.column_stack([3 - Y, Y])


def slope_of(y, p):
    z = np.log(p / (1 - p))[:, None]
    return LogisticRegression(C=np.inf, tol=1e-12, max_iter=10**5).fit(z, y).coef_[0, 0]


CASES = {**METRICS, **TESTS, **MORE}
