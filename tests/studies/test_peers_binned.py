"""Other packages: the same numbers away from bin edges, and what they say on them.

Where a definition differs, the call that makes it agree says so.
"""

from importlib import import_module, metadata

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve

from skcal.metrics import calibration_bins, expected_calibration_error, maximum_calibration_error

# Torch scripts and SWIG types warn when they are imported.
pytestmark = pytest.mark.filterwarnings("ignore")
N_BINS = 10


@pytest.fixture
def multiclass(rng):
    return rng.dirichlet(np.ones(4), size=500), rng.integers(0, 4, 500)


@pytest.fixture
def binary(rng):
    p = rng.uniform(size=500)
    return p, (rng.uniform(size=500) < p**2).astype(int)


def errors(y, proba, **options):
    """Return the mean, the root mean square and the largest gap."""
    options = {"n_bins": N_BINS, **options}
    rms = expected_calibration_error(y, proba, norm=2, **options)
    return (
        expected_calibration_error(y, proba, **options),
        rms,
        maximum_calibration_error(y, proba, **options),
    )


@pytest.mark.peers
def test_torchmetrics_binary_is_binary_and_multiclass_is_confidence(binary, multiclass):
    torch = import_module("torch")
    theirs = import_module("torchmetrics.functional.classification")
    p, y = map(torch.tensor, binary)
    found = [theirs.binary_calibration_error(p, y, N_BINS, norm) for norm in ("l1", "l2", "max")]
    assert_allclose(found, errors(binary[1], binary[0]), rtol=1e-12)
    proba, labels = map(torch.tensor, multiclass)
    found = [
        theirs.multiclass_calibration_error(proba, labels, 4, N_BINS, norm)
        for norm in ("l1", "l2", "max")
    ]
    # Confidences become float32.
    assert_allclose(found, errors(multiclass[1], multiclass[0]), rtol=1e-5)


@pytest.mark.peers
def test_probmetrics_passes_to_torchmetrics_in_single_precision(binary, multiclass):
    torch = import_module("torch")
    metrics = import_module("probmetrics.metrics")
    columns = np.column_stack([1 - binary[0], binary[0]])
    for proba, y, notion in ((*multiclass, "confidence"), (columns, binary[1], "binary")):
        found = [
            metrics.CalibrationError(N_BINS, norm).compute_from_labels_probs(
                torch.tensor(y), torch.tensor(proba)
            )
            for norm in ("l1", "l2", "max")
        ]
        # Probabilities are clamped to [1e-7, 1 - 1e-7], too.
        assert_allclose(found, errors(y, proba, notion=notion), rtol=1e-5)


@pytest.mark.peers
def test_netcal_is_binary_for_two_labels_and_confidence_for_more(binary, multiclass):
    metrics = import_module("netcal.metrics")
    for proba, y in (binary, multiclass):
        ece, _, mce = errors(y, proba)
        assert_allclose(metrics.ECE(N_BINS).measure(proba, y), ece, rtol=1e-12)
        assert_allclose(metrics.MCE(N_BINS).measure(proba, y), mce, rtol=1e-12)
        # ACE is the plain mean over the bins that are not empty.
        gaps = np.abs(calibration_bins(y, proba, n_bins=N_BINS).gap)
        assert_allclose(metrics.ACE(N_BINS).measure(proba, y), np.nanmean(gaps), rtol=1e-12)
    # Equal masses are interpolated quantiles: the same groups where n is a multiple of n_bins.
    found = metrics.ECE(N_BINS, equal_intervals=False).measure(*binary)
    ece, _, _ = errors(binary[1], binary[0], strategy="quantile")
    assert_allclose(found, ece, rtol=1e-12)


# Their "top-label" is "confidence" here, their "marginal" the mean over classes.
MODES = {
    "top-label": {"notion": "confidence"},
    "marginal": {"notion": "classwise", "average": "macro"},
    "binary": {},
}


@pytest.mark.peers
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_uncertainty_calibration_debiases_by_labels(binary, multiclass, mode, strategy):
    uc = import_module("calibration")
    scheme = {"uniform": uc.get_equal_prob_bins, "quantile": uc.get_equal_bins}[strategy]
    proba, y = binary if mode == "binary" else multiclass
    options = {**MODES[mode], "strategy": strategy, "n_bins": 5}
    # Bins of one sample are left out of the debiased sum, there as here.
    if mode == "binary":
        mode = "marginal"  # takes any mode for one column
    for norm, debias, ours in ((1, False, False), (2, False, False), (2, True, "labels")):
        found = uc.lower_bound_scaling_ce(proba, y, norm, debias, 5, scheme, mode)
        expected = expected_calibration_error(y, proba, norm=norm, debias=ours, **options)
        assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.peers
def test_uncertainty_calibration_gives_rounded_predictions_a_bin_a_value(binary):
    uc = import_module("calibration")
    p, y = np.round(binary[0], 1), binary[1]
    expected = expected_calibration_error(y, p, strategy="unique", norm=2, debias="labels")
    assert_allclose(uc.get_calibration_error(p, y), expected, rtol=1e-10)


@pytest.mark.peers
def test_mapie_makes_one_bin_less_and_averages_over_classes_without_weights(binary, multiclass):
    mapie = import_module("mapie.metrics.calibration")
    rule = {"num_bins": N_BINS + 1, "split_strategy": "uniform"}
    p, happened = binary
    found = mapie.expected_calibration_error(happened, p, **rule)
    assert_allclose(found, errors(happened, p)[0], rtol=1e-12)
    proba, y = multiclass
    correct = (proba.argmax(axis=1) == y).astype(int)
    found = mapie.expected_calibration_error(correct, proba, **rule)
    assert_allclose(found, errors(y, proba)[0], rtol=1e-12)
    found = mapie.expected_calibration_error(None, proba, **rule, classwise=True, class_labels=y)
    macro = {"average": "macro", "n_bins": N_BINS}
    expected = expected_calibration_error(y, proba, notion="classwise", **macro)
    assert_allclose(found, expected, rtol=1e-12)
    found = mapie.top_label_ece(y, proba, **rule)
    expected = expected_calibration_error(y, proba, notion="top-label", **macro)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.peers
def test_relplot_agrees_on_uniform_bins(binary):
    metrics = import_module("relplot.metrics")
    assert_allclose(metrics.binnedECE(*binary, N_BINS), errors(binary[1], binary[0])[0], rtol=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_curve_of_scikit_learn_is_the_table_without_empty_bins(binary, strategy):
    # Its quantiles are interpolated: the same groups where n is a multiple of n_bins.
    p, y = binary
    curve = calibration_curve(y, p, n_bins=N_BINS, strategy=strategy)
    table = calibration_bins(y, p, n_bins=N_BINS, strategy=strategy)
    filled = table.count > 0
    assert_allclose(curve, [table.frequency[filled, 0], table.prediction[filled, 0]], rtol=1e-12)


# On the grid k/10 with 10 bins, 10 samples at each of the 11 values. Gaps of neighbours cancel
# when they share a bin, so that each partition has its own value, in units of 1/110.

HITS = [2, 0, 4, 1, 6, 3, 8, 5, 10, 7, 8]


def torchmetrics_ece(y, p):
    torch = import_module("torch")
    theirs = import_module("torchmetrics.functional.classification")
    return theirs.binary_calibration_error(torch.tensor(p), torch.tensor(y), N_BINS).item()


def probmetrics_ece(y, p):
    torch = import_module("torch")
    theirs = import_module("probmetrics.metrics").CalibrationError(N_BINS)
    columns = torch.tensor(np.column_stack([1 - p, p]))
    return theirs.compute_from_labels_probs(torch.tensor(y), columns).item()


def netcal_ece(y, p):
    return import_module("netcal.metrics").ECE(N_BINS).measure(p, y)


def uncertainty_calibration_ece(y, p):
    return import_module("calibration").get_ece(p, y, num_bins=N_BINS)


def relplot_ece(y, p):
    return import_module("relplot.metrics").binnedECE(p, y, N_BINS)


def mapie_ece(y, p, num_bins=N_BINS):
    theirs = import_module("mapie.metrics.calibration")
    return theirs.expected_calibration_error(y, p, num_bins, "uniform")


def mapie_ece_of_one_more(y, p):
    return mapie_ece(y, p, N_BINS + 1)


def scikit_learn_ece(y, p):
    """Of the points of the curve; a bin has 20 samples if two values share it, and else 10."""
    frequency, prediction = calibration_curve(y, p, n_bins=N_BINS)
    counts = np.where(np.abs(10 * prediction - np.rint(10 * prediction)) > 0.1, 20, 10)
    assert counts.sum() == len(p)
    return counts @ np.abs(frequency - prediction) / len(p)


def skcal_ece(y, p):
    return expected_calibration_error(y, p, n_bins=N_BINS)


GRID = [
    # package, its version, function, float64, float32
    (None, None, skcal_ece, 19, 19),  # {0, .1}, {.2}, …, {1}: (a, b], the first with 0
    # [a, b), and p = 1 alone. linspace has 0.30000000000000004, so {.2, .3} in float64.
    ("torchmetrics", "1.9.0", torchmetrics_ece, 17, 21),
    ("probmetrics", "1.3.0", probmetrics_ece, 17, 21),  # passes on to torchmetrics
    # [a, b), p clipped below 1. {.2, .3}, {.5, .6} and {.9, 1} in float64; in float32 its counts
    # and its means come from different partitions.
    ("netcal", "1.4.0", netcal_ece, 13, 21),
    # (a, b], the first with 0; float32 is compared with edges of float64: {.4, .5}, {.6, .7}, …
    ("uncertainty-calibration", "0.1.4", uncertainty_calibration_ece, 19, 9),
    ("relplot", "1.0.3", relplot_ece, 13, 21),  # ⌊p / 0.1⌋: {.2, .3}, {.5, .6}; p = 1 alone
    ("MAPIE", "1.6.0", mapie_ece, 21, 21),  # 9 bins and one more for 0
    ("MAPIE", "1.6.0", mapie_ece_of_one_more, 21, 9),  # 10 bins (a, b] and one more for 0
    ("scikit-learn", "1.9.1", scikit_learn_ece, 19, 9),  # as uncertainty-calibration
]


def installed(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("package", "version", "function", "double", "single"),
    [
        pytest.param(*row, marks=[pytest.mark.peers] * (row[0] not in (None, "scikit-learn")))
        for row in GRID
    ],
)
def test_packages_differ_on_the_grid(package, version, function, double, single, dtype):
    tenths = np.repeat(np.arange(11), 10)
    y = (np.arange(110) % 10 < np.take(HITS, tenths)).astype(int)
    if package and installed(package) != version:
        pytest.skip(f"the values are those of {package} {version}")
    found = function(y, (tenths / 10).astype(dtype))
    assert_allclose(found, (double if dtype == np.float64 else single) / 110, rtol=1e-6)
