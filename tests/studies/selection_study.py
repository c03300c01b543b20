"""What a model loses that is chosen by the log loss, its refinement part, the Brier score or ECE.

Ten data sets, three models with a grid each, and in each grid a constant and a model that shuffles
its predictions. The criterion is the mean over three folds of the training half. The chosen model
is fitted to this half; its loss on the other half is that as it is, and that after a recalibration
which is fitted to the predictions of the three folds. Run

    python tests/studies/selection_study.py --out rows.csv --seeds 1                # resumes
    python tests/studies/selection_study.py --out rows.csv --seeds 1 --tables doc/evidence
"""

import warnings
from itertools import product

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from study_tools import append, command_line, kept, mean_and_error, rows_of, write_table

from skcal.metrics import expected_calibration_error, refinement_loss
from skcal.recalibration import BayesianCalibration, VectorScaling

N_TRAIN, N_FRESH = 300, 1000


def drawn(n_samples=N_TRAIN + N_FRESH, **options):
    options = {"n_features": 20, "n_informative": 5, "class_sep": 0.7, **options}
    return lambda: make_classification(n_samples, random_state=0, **options)


def few_digits():
    X, y = load_digits(return_X_y=True)
    return X[y < 5], y[y < 5]


DATA = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits 0 to 4": few_digits,
    "drawn: 2 classes": drawn(flip_y=0.05),
    "drawn: 30 % random labels": drawn(flip_y=0.3),
    "drawn: 10 % events": drawn(weights=[0.9], flip_y=0.02),
    "drawn: 100 features": drawn(n_features=100),
    "drawn: 3 classes": drawn(n_classes=3, flip_y=0.1),
    "drawn: clusters": drawn(n_clusters_per_class=8, n_informative=8),
}


def logistic(X, y, X_test):
    for C in 10.0 ** np.arange(-9, 5, 2):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=300))
        yield f"C={C:g}", model.fit(X, y).predict_proba(X_test)


def tree(X, y, X_test):
    for least in (1, 3, 10, 30, 100):
        model = DecisionTreeClassifier(min_samples_leaf=least, random_state=0)
        yield f"min_samples_leaf={least}", model.fit(X, y).predict_proba(X_test)


def boosting(X, y, X_test):
    model = GradientBoostingClassifier(n_estimators=100, max_depth=2, random_state=0).fit(X, y)
    for k, proba in enumerate(model.staged_predict_proba(X_test)):
        if k + 1 in (1, 3, 10, 30, 100):
            yield f"n_estimators={k + 1}", proba


MODELS = {"logistic regression": logistic, "tree": tree, "boosting": boosting}


def with_useless(predict, X, y, X_test):
    """The predictions of each setting, of a constant, and of the last setting in random order."""
    proba = dict(predict(X, y, X_test))
    frequencies = np.bincount(y) / len(y)
    last = list(proba.values())[-1]
    proba["constant"] = np.tile(frequencies, (len(X_test), 1))
    proba["shuffled"] = np.random.default_rng(0).permutation(last)
    return proba


def options_of(proba):
    return {"labels": range(proba.shape[1])}


CRITERIA = {
    "log loss": lambda y, p: log_loss(y, p, **options_of(p)),
    "refinement part": lambda y, p: refinement_loss(y, p, **options_of(p)),
    "Brier score": lambda y, p: np.mean(((np.eye(p.shape[1])[y] - p) ** 2).sum(axis=1)),
    "ECE": lambda y, p: expected_calibration_error(y, p, **options_of(p)),
}


def recalibrated(held_out, y, proba):
    """Predictions recalibrated by a method that is fitted to the predictions of the folds."""
    n_classes = proba.shape[1]
    vector = VectorScaling(C=1 / (2 * n_classes), structured=True)
    fitted = (BayesianCalibration() if n_classes == 2 else vector).fit(held_out, y)
    return (len(y) * fitted.predict_proba(proba) + 1 / n_classes) / (len(y) + 1)


def rows(data, model, seed):
    """Of each criterion what it chose and the losses of this; first the least of all settings."""
    X, y = DATA[data]()
    size = min(N_TRAIN, len(y) // 2)
    split = train_test_split(X, y, train_size=size, stratify=y, random_state=seed)
    X, fresh, y, fresh_y = split
    folds = StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y)
    scores, held_out = [], {}
    for train, test in folds:
        proba = with_useless(MODELS[model], X[train], y[train], X[test])
        scores.append([[c(y[test], p) for p in proba.values()] for c in CRITERIA.values()])
        for name, p in proba.items():
            held_out.setdefault(name, np.empty((len(y), p.shape[1])))[test] = p
    found = with_useless(MODELS[model], X, y, fresh)
    losses = {
        name: [
            log_loss(fresh_y, q, **options_of(q)) for q in (p, recalibrated(held_out[name], y, p))
        ]
        for name, p in found.items()
    }
    best = np.argmin(np.mean(scores, axis=0), axis=1)
    chosen = {name: list(found)[k] for name, k in zip(CRITERIA, best, strict=True)}
    least = np.min(list(losses.values()), axis=0)
    return [
        (data, model, str(seed), name, choice, *(np.array(losses[choice]) - least))
        for name, choice in chosen.items()
    ]


def tables(path, folder):
    """Mean losses above the least of the grid, and how often a useless model was chosen."""
    found = rows_of(path)
    for_all = [*MODELS, "all"]
    lines = []
    for criterion in CRITERIA:
        own = [row for row in found if row[3] == criterion]
        line = [criterion]
        for model in for_all:
            excess = [float(row[6]) for row in own if model in (row[1], "all")]
            line.append(f"{mean_and_error(excess)[0]:.3f} ± {mean_and_error(excess)[1]:.3f}")
        as_is = mean_and_error([float(row[5]) for row in own])
        useless = sum(row[4] in ("constant", "shuffled") for row in own)
        smallest = sum(row[4] in ("C=1e-09", "C=1e-07") for row in own)
        lines.append(
            [*line, f"{as_is[0]:.3f} ± {as_is[1]:.3f}", f"{useless} of {len(own)}", smallest]
        )
    header = ["chosen by", *(f"{name}, recalibrated" for name in for_all)]
    header += ["all, as it is", "useless model chosen", "C ≤ 1e-7 chosen"]
    write_table(folder, "selection", header, lines)


def main():
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    done = kept(given.out, 3)
    cells = product(range(given.seeds), DATA, MODELS)
    todo = [(d, m, s) for s, d, m in cells if (d, m, str(s)) not in done]
    append(given.out, (rows(*cell) for cell in todo))
    if given.tables:
        tables(given.out, given.tables)


if __name__ == "__main__":
    main()
