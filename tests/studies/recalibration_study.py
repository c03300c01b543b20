"""How close the default recalibrator comes to known truths, beside single maps.

Two classes: predictions with a known probability of the event. A map is fitted to n samples, and
its mean Kullback-Leibler divergence from the truth is computed on 10,000 fresh predictions. A map
is also checked for whether it keeps the ranking. Run

    python tests/studies/recalibration_study.py --out rows.csv                 # resumes
    python tests/studies/recalibration_study.py --out rows.csv --tables OUT
"""

import warnings
from itertools import product

import numpy as np
from laws import beta, inner, labels_of, nearly_certain, normal_logits, odds, same
from scipy.special import expit, logit, xlogy
from scipy.stats import t as student
from study_tools import append, command_line, kept, mean_and_error, rows_of, write_table

from skcal import Recalibrator, TemperatureScaling
from skcal.recalibration import BetaCalibration, Identity, InterceptCalibration, VectorScaling

SIZES = (100, 300, 1000)
N_SETS, N_FRESH = 20, 10_000


# Predictions and truths


def tenths(rng, n):
    return rng.integers(1, 10, n) / 10


def kinked(p):
    z = logit(p)
    return expit(np.where(z > 0, 0.4 * z, z))


def plateaus(p):
    return np.select([p < 0.15, p < 0.5, p < 0.7], [0.05, 0.3, 0.45], 0.9)


#: Name → (draw predictions, truth of a prediction).
TRUTHS = {
    "base rate moved (logit + 0.5)": (inner, odds(1, 0.5)),
    "slope 0.7": (inner, odds(0.7)),
    "saturated network (slope 0.2)": (normal_logits(0, 10), odds(0.2)),
    "three steps": (inner, lambda p: np.select([p < 1 / 3, p < 2 / 3], [1 / 6, 0.5], 5 / 6)),
    "Beta-shaped": (inner, lambda p: expit(1.5 * np.log(p) - 0.6 * np.log1p(-p))),
    "calibrated, uniform": (inner, same),
    "calibrated, 2 % events": (normal_logits(-4.2, 1.1), same),
    "calibrated, sure": (nearly_certain, same),
    "rare, base rate - 0.4": (normal_logits(-3, 1), odds(1, -0.4)),
    "slope 1.5, normal logits": (normal_logits(0.5, 1.2), odds(1.5)),
    "slope 0.8 and intercept 0.6": (beta(2, 5), odds(0.8, 0.6)),
    "Student's link": (normal_logits(0, 2), lambda p: student.cdf(logit(p), 2)),
    "kinked": (inner, kinked),
    "4 % of the labels wrong": (normal_logits(0, 3), lambda p: 0.04 + 0.92 * p),
    "four plateaus": (inner, plateaus),
    "tenths, base rate - 0.6": (tenths, odds(1, -0.6)),
    "not increasing: a sine": (inner, lambda p: np.clip(p + 0.15 * np.sin(6 * np.pi * p), 0, 1)),
}


def methods():
    """Name → unfitted map; the first is judged, the others are single maps."""
    return {
        "default": Recalibrator(random_state=0),
        "raw": Identity(),
        "temperature": TemperatureScaling(),
        "intercept": InterceptCalibration(),
        "Platt": VectorScaling(),
        "Beta": BetaCalibration(),
    }


def divergence(truth, q):
    """10,000 times the mean Kullback-Leibler divergence of probabilities from the truth."""
    q = np.clip(q, 1e-12, 1 - 1e-12)
    each = xlogy(truth, truth) - truth * np.log(q)
    each += xlogy(1 - truth, 1 - truth) - (1 - truth) * np.log1p(-q)
    return 1e4 * each.mean()


def batches(done):
    """Rows of a truth, a size and a set: each method's divergence and whether it keeps ranks."""
    grid = expit(np.linspace(-6, 6, 2001))
    for seed, n, (name, (draw, truth)) in product(range(N_SETS), SIZES, TRUTHS.items()):
        fresh = draw(np.random.default_rng(123), N_FRESH)
        rng = np.random.default_rng([seed, n])
        p = draw(rng, n)
        y = labels_of(truth(p), rng)
        rows = []
        for method, unfitted in methods().items():
            if (name, str(n), str(seed), method) in done or y.min() == y.max():
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = unfitted.fit(p, y)
            value = divergence(truth(fresh), fitted.predict_proba(fresh)[:, 1])
            falls = np.diff(fitted.predict_proba(grid)[:, 1]).min() < -1e-9
            rows.append((name, n, seed, method, f"{value:.4f}", int(falls)))
        yield rows


def main():
    options = command_line(__doc__).parse_args()
    if options.tables is None:
        append(options.out, batches(kept(options.out, 4)))
        return
    found = read(options.out)
    header = ["truth", "n", "raw", "best single method", "its name", "default", "s.e."]
    rows = []
    for name in TRUTHS:
        for n in map(str, SIZES):
            of_methods = {
                method: values
                for (truth, size, method), values in found.items()
                if (truth, size) == (name, n)
            }
            if not of_methods:
                continue
            means = {
                method: mean_and_error([value for value, _ in values])
                for method, values in of_methods.items()
            }
            best = min(set(means) - {"default"}, key=lambda method: means[method][0])
            rows.append(
                [name, n, f"{means['raw'][0]:.1f}", f"{means[best][0]:.1f}", best]
                + [f"{value:.1f}" for value in means["default"]]
            )
    write_table(options.tables, "recalibration", header, rows)


def read(path):
    """(truth, n, method) → (divergence, whether the map falls) of each set."""
    found = {}
    for truth, n, _, method, value, falls in rows_of(path):
        found.setdefault((truth, n, method), []).append((float(value), int(falls)))
    return found


if __name__ == "__main__":
    main()
