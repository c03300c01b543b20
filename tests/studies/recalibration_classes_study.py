"""The calibration error that the default recalibrator leaves on networks of 100 classes.

Eight networks whose logits are those of the truth, made wrong in a way of their own. Maps are
fitted to 2,000 samples and judged by the known chances of 10,000 others, so without the noise of
labels: error of the confidence in 15 bins, log loss and accuracy. Run

    python tests/studies/recalibration_classes_study.py --out rows.csv                 # resumes
    python tests/studies/recalibration_classes_study.py --out rows.csv --tables OUT
"""

import warnings

import numpy as np
from laws import labels_of
from scipy.special import softmax, xlogy
from study_tools import append, command_line, kept, rows_of, write_table

from skcal import Recalibrator, TemperatureScaling
from skcal.recalibration import Identity

N_FIT, N_TEST, N_CLASSES, N_FEATURES = 2000, 10_000, 100, 30


def logits_of(rng, n, spread=4.0, prior=0.0):
    """True logits of n samples of which some are harder, and rarer classes if prior is above 0."""
    weights = rng.normal(size=(N_FEATURES, N_CLASSES)) * spread / np.sqrt(N_FEATURES)
    x = rng.normal(size=(n, N_FEATURES)) * rng.gamma(4, 0.5, size=(n, 1))
    return x @ weights - prior * np.log(np.arange(1, N_CLASSES + 1))


def noisy(z, rng, size):
    """Logits whose errors belong to the sample and the class."""
    return z + size * rng.normal(size=z.shape)


def network(kind):
    """Chances, predictions, and labels for a fit; no network has the form of a default map."""
    rng = np.random.default_rng([7, list(NETWORKS).index(kind)])
    chance, given = NETWORKS[kind](rng, N_FIT + N_TEST)
    return chance, softmax(given, axis=1), labels_of(chance, rng)[:N_FIT]


def overconfident(rng, n):
    z = logits_of(rng, n)
    return softmax(z, axis=1), 1.8 * noisy(z, rng, 0.7)


def underconfident(rng, n):
    z = logits_of(rng, n)
    return softmax(z, axis=1), 0.6 * noisy(z, rng, 0.3)


def label_noise(rng, n):
    """A tenth of the labels is drawn from all classes."""
    z = logits_of(rng, n, 6.0)
    return 0.9 * softmax(z, axis=1) + 0.1 / N_CLASSES, 1.3 * z


def temperature_of_classes(rng, n):
    z = logits_of(rng, n)
    return softmax(z, axis=1), noisy(z, rng, 0.5) * rng.uniform(0.9, 2.0, N_CLASSES)


def temperature_of_samples(rng, n):
    """Hard samples are sharpened most."""
    z = logits_of(rng, n)
    return softmax(z, axis=1), z * (1 + 6 / (2 + z.max(axis=1, keepdims=True)))


def wrong_weights(rng, n):
    z = logits_of(rng, n)
    mixing = np.eye(N_CLASSES) + 0.06 * rng.normal(size=(N_CLASSES, N_CLASSES))
    return softmax(z, axis=1), 1.5 * (z @ mixing + 0.5 * rng.normal(size=N_CLASSES))


def long_tail(rng, n):
    """Few classes have most samples, and the network was trained on all classes equally."""
    z = logits_of(rng, n, prior=0.8)
    balanced = z + 0.8 * np.log(np.arange(1, N_CLASSES + 1))
    return softmax(z, axis=1), 1.4 * noisy(balanced, rng, 0.5)


def coarse_classes(rng, n):
    """The network tells ten groups of ten classes better than the classes of a group."""
    z = logits_of(rng, n)
    within = np.repeat(logits_of(rng, n)[:, :10], 10, axis=1)
    return softmax(z + within, axis=1), 1.6 * noisy(0.6 * z + within, rng, 0.5)


NETWORKS = {
    "overconfident": overconfident,
    "underconfident": underconfident,
    "a tenth of the labels random": label_noise,
    "a temperature for each class": temperature_of_classes,
    "hard samples sharpened": temperature_of_samples,
    "wrong weights and biases": wrong_weights,
    "long tail, trained on equal classes": long_tail,
    "ten coarse classes": coarse_classes,
}


def methods():
    return {
        "raw": Identity(),
        "temperature": TemperatureScaling(),
        "default": Recalibrator(random_state=0),
    }


def measured(chance, proba):
    """Gap of confidence and chance of being right, in 15 bins; log loss; accuracy. No labels."""
    predicted, confidence = proba.argmax(axis=1), proba.max(axis=1)
    right = chance[np.arange(len(chance)), predicted]
    bins = np.minimum((15 * confidence).astype(int), 14)
    error = np.abs(np.bincount(bins, confidence - right)).sum() / len(chance)
    return error, -xlogy(chance, np.maximum(proba, 1e-300)).sum(axis=1).mean(), right.mean()


def batches(done):
    for kind in NETWORKS:
        chance, P, y = network(kind)
        rows = []
        for name, unfitted in methods().items():
            if (kind, name) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                after = unfitted.fit(P[:N_FIT], y).predict_proba(P[N_FIT:])
            rows.append((kind, name, *measured(chance[N_FIT:], after)))
        yield rows


def main():
    options = command_line(__doc__).parse_args()
    if options.tables is None:
        append(options.out, batches(kept(options.out, 2)))
        return
    found = {(kind, name): map(float, values) for kind, name, *values in rows_of(options.out)}
    rows = []
    for kind in NETWORKS:
        raw, temperature, default = (list(found[kind, name]) for name in methods())
        errors = [f"{values[0]:.4f}" for values in (raw, temperature, default)]
        losses = [f"{values[1]:.3f}" for values in (raw, temperature, default)]
        rows.append([kind, *errors, *losses, f"{raw[2]:.3f}", f"{default[2]:.3f}"])
    three = ["raw", "temperature", "default"]
    header = ["network", *(f"{what}, {name}" for what in ("error", "log loss") for name in three)]
    write_table(
        options.tables, "recalibration_classes", [*header, "accuracy, raw", "default"], rows
    )


if __name__ == "__main__":
    main()
