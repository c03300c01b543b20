"""What ``do_no_harm`` keeps and spares: true errors with the rule and without, truths known.

python tests/studies/harm_study.py --out rows.csv                 # resumes
python tests/studies/harm_study.py --out rows.csv --tables OUT
"""

import warnings
from itertools import product

import numpy as np
from laws import beta, between, labels_of, normal_logits, odds, same
from recalibration_study import divergence
from study_tools import append, command_line, kept, rows_of, write_table

from skcal import Recalibrator

SIZES, N_SETS, N_FRESH = (150, 1000, 5000), 200, 4000
RARE, LOW, INNER = normal_logits(-6, 1.9), normal_logits(-3.5, 1.2), between(0.05, 0.95)
#: Name → (draw predictions, truth of a prediction).
TRUTHS = {
    "no help: 1 %, at most 0.12": (RARE, lambda p: np.minimum(p, 0.12)),
    "no help: Beta, at most 0.12": (beta(0.25, 20), lambda p: np.minimum(p, 0.12)),
    "no help: a sine": (INNER, lambda p: p + 0.04 * np.sin(10 * np.pi * p)),
    "calibrated, uniform": (INNER, same),
    "calibrated, 1 %": (RARE, same),
    "helps: 1 %, logit + 0.7": (RARE, odds(1, 0.7)),
    "helps: 1 %, slope 0.6": (RARE, odds(0.6, -1)),
    "helps: 5 %, logit - 0.5": (LOW, odds(1, -0.5)),
    "helps: logit + 0.4": (INNER, odds(1, 0.4)),
    "helps: slope 0.7": (INNER, odds(0.7)),
    "helps: logit + 0.2": (INNER, odds(1, 0.2)),
}


def batches(done):
    """Errors and divergences of each set: as it was, always recalibrated, and with the rule."""
    for seed, n, (number, (name, (draw, truth))) in product(
        range(N_SETS), SIZES, enumerate(TRUTHS.items())
    ):
        if (name, str(n), str(seed)) in done:
            continue
        rng = np.random.default_rng([58, seed, n, number])
        y = np.zeros(n)
        while y.min() == y.max():
            p = draw(rng, n)
            y = labels_of(truth(p), rng)
        fresh = draw(rng, N_FRESH)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = Recalibrator(random_state=seed).fit(p, y)
            always = Recalibrator(do_no_harm=False, cv=2, random_state=seed)  # the same map
            always = fitted if fitted.best_name_ != "Identity" else always.fit(p, y)
        answers = [fresh, *(one.predict_proba(fresh)[:, 1] for one in (always, fitted))]
        errors = [1e4 * np.abs(q - truth(fresh)).mean() for q in answers]
        losses = [divergence(truth(fresh), q) for q in answers]
        yield [(name, n, seed, *errors, *losses, int(fitted.best_name_ == "Identity"))]


def main():
    options = command_line(__doc__).parse_args()
    if options.tables is None:
        append(options.out, batches(kept(options.out, 3)))
        return
    cells = {}
    for name, n, _, *values in rows_of(options.out):
        cells.setdefault(name, {}).setdefault(int(n), []).append([*map(float, values)])
    sizes = sorted({n for by_size in cells.values() for n in by_size})
    header = ["predictions and truth"]
    for n in sizes:
        of_size = ("before", "always", "with the rule", "kept")
        header += [f"{what} ({n:,})" for what in of_size]
    rows = []
    for name, by_size in cells.items():
        rows.append([name])
        for n in sizes:
            *errors, kept_ones = np.mean(by_size[n], axis=0)[[0, 1, 2, -1]]
            rows[-1] += [*(f"{error:.0f}" for error in errors), f"{100 * kept_ones:.0f} %"]
    write_table(options.tables, "harm", header, rows)


if __name__ == "__main__":
    main()
