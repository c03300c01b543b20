"""The estimates of a search by loops over samples, pairs, cells and outcomes."""

import numpy as np


def moments(features, vectors):
    """Mean, variance and third central moment of ⟨e_Y, v⟩, Y one of the columns (or none of one).

    Parameters
    ----------
    features, vectors : list of floats, one a column
    """
    if len(features) == 1:
        chances, values = [features[0], 1 - features[0]], [vectors[0], 0.0]
    else:
        chances, values = np.array(features) / np.sum(features), vectors
    mean = sum(c * v for c, v in zip(chances, values, strict=True))
    return mean, *(
        sum(c * (v - mean) ** k for c, v in zip(chances, values, strict=True)) for k in (2, 3)
    )


def by_sample(data, *arrays):
    """Columns of all problems of each sample: a list of (features, residuals, *arrays)."""
    n = len(data.weight)
    samples = [tuple([] for _ in range(2 + len(arrays))) for _ in range(n)]
    for k, part in enumerate(data.parts):
        for place, i in enumerate(np.arange(n)[part.rows]):
            rows = part.features, part.residuals, *(array[k] for array in arrays)
            for column, values in zip(samples[i], rows, strict=True):
                column.extend(float(value) for value in values[place])
    return samples


def one_step(corrections, data):
    """Terms, value and guarded standard error of the one-step estimate."""
    share = data.weight / data.weight.sum()
    samples = by_sample(data, corrections)
    terms = [sum(2 * d * g - g * g for d, g in zip(*s[1:], strict=True)) for s in samples]
    paid = [sum(g * g for g in g_hat) for _, _, g_hat in samples]
    value = share @ terms
    at_p = np.array([moments(p, g) for p, _, g in samples])
    variance, third = share**2 @ at_p[:, 1], share**3 @ at_p[:, 2]
    belief = 1 - min(0.25, 2 * third**2 / variance**3) if variance > 0 else 1
    moved = [
        moments([min(max(a + belief * b, 0), 1) for a, b in zip(p, g, strict=True)], g)[1]
        for p, _, g in samples
    ]
    centred = np.array(paid) - share @ paid
    implied = 4 * np.minimum(at_p[:, 1], moved) + centred**2
    observed = (np.array(terms) - value) ** 2
    scale = 1 - share @ share
    variances = [share**2 @ one / scale for one in (observed, implied)]
    return np.array(terms), value, np.sqrt(max(variances))


def covariance(p):
    """Of the outcome under the prediction, as a matrix of the residuals' columns."""
    return np.diag(p) - np.outer(p, p)


def pairs_in_cells(data, cells):
    """Value, variance at calibration and influence of the debiased cells, pair by pair."""
    value, variance, influence = 0.0, 0.0, np.zeros(len(data.weight))
    for part, cell in zip(data.parts, cells, strict=True):
        w, d, x = part.weight, part.residuals, part.features.astype(float)
        places = np.arange(len(data.weight))[part.rows]
        inner, covariances = (
            d @ d.T,
            np.array([covariance(p) for p in x]).reshape(len(x), *2 * x.shape[1:]),
        )
        traces = np.einsum("iab,jba->ij", covariances, covariances)
        for b in set(cell):
            members = np.flatnonzero(cell == b)
            own = np.ix_(members, members)
            weights = np.outer(w, w)[own] * ~np.eye(len(members), dtype=bool)
            pairs = weights.sum()
            if not pairs:
                continue
            mass = w[members].sum()
            share, mean = part.share * mass / w.sum(), np.sum(weights * inner[own]) / pairs
            value += share * mean
            variance += share**2 * np.sum(2 * weights**2 * traces[own]) / pairs**2
            rows = np.sum(weights * inner[own], axis=1) / w[members]
            influence[places[members]] += 2 * rows * mass / pairs - mean
    if len(data.parts) > 1 and isinstance(data.parts[0].rows, slice):
        # Residuals of the classes sum to 0, so that C of them have C - 1 degrees of freedom.
        variance *= len(data.parts) / (len(data.parts) - 1)
    return value, variance, influence


def product(data, corrections, cells=None):
    """The same of mean ⟨δ, v⟩, v = ĝ or, given cells, ĝ minus its mean over the cell."""
    means = [np.zeros_like(g) for g in corrections]
    for k, part in enumerate(data.parts):
        for b in [] if cells is None else set(cells[k]):
            members = np.flatnonzero(cells[k] == b)
            if len(members) > 1:
                mean = np.average(corrections[k][members], axis=0, weights=part.weight[members])
                means[k][members] = mean
    share = data.weight / data.weight.sum()
    value, variance, influence = 0.0, 0.0, np.zeros(len(share))
    for i, (p, delta, g, mean) in enumerate(by_sample(data, corrections, means)):
        v = np.array(g) - mean
        value += share[i] * np.dot(delta, v)
        variance += share[i] ** 2 * (moments(p, v)[1] if p else 0.0)
        influence[i] = v @ (2 * (np.array(delta) - mean) - v)
    return value, variance, influence


def halve(part, cell):
    """Cut each cell between two distinct values of its widest feature, nearest to half its mass."""
    halved = [None] * len(cell)
    for b in set(cell):
        members = np.flatnonzero(cell == b)
        X, w = part.features[members].astype(float), part.weight[members]
        spread = [np.average((x - np.average(x, weights=w)) ** 2, weights=w) for x in X.T]
        x = X[:, int(np.argmax(spread))]
        values = sorted(set(x))[:-1]
        cut = min(values, key=lambda v: abs(w[x <= v].sum() - w.sum() / 2), default=np.inf)
        for i, above in zip(members, x > cut, strict=True):
            halved[i] = 2 * b + int(above)
    return np.array(halved, dtype=int)


def effective(part):
    return part.weight.sum() ** 2 / np.sum(part.weight**2) if len(part.weight) else 0.0


def partitions(data):
    """Name and cells of every partition: halved at medians and, of scalars, of equal widths."""
    cells = [np.zeros(len(part.weight), dtype=int) for part in data.parts]
    tried = [("1 cell", cells)]
    most = min(64, max(map(effective, data.parts)) / 5)
    while 2 ** len(tried) <= most * (1 + 1e-9):
        cells = [halve(part, cell) for part, cell in zip(data.parts, cells, strict=True)]
        tried.append((f"{max(len(set(cell)) for cell in cells)} cells", cells))
    if data.parts[0].features.shape[1] == 1:
        for n_bins in (5, 10, 15, 30):
            edges = np.arange(1, n_bins) / n_bins  # a bin holds its right edge
            cells = [np.array([np.sum(x > edges) for x in part.features]) for part in data.parts]
            tried.append((f"{n_bins} bins", cells))
    variance = sum(
        effective(part)
        * np.average(np.sum(part.features * (1.0 - part.features), axis=1), weights=part.weight)
        for part in data.parts
        if len(part.weight)
    )
    kept, seen = [], []
    for name, cells in tried:
        same = [[[j == i for j in cell] for i in cell] for cell in cells]
        n_cells = sum(len(set(cell)) for cell in cells)
        if same not in seen and (name == "1 cell" or variance * (1 + 1e-9) >= 3 * n_cells):
            kept.append((name, cells))
            seen.append(same)
    return kept


def candidates(data, corrections):
    """Name, value, variance at calibration and influence of every candidate."""
    found = []
    for name, cells in partitions(data):
        alone = pairs_in_cells(data, cells)
        if not found:
            value, variance, influence = product(data, corrections)
            found.append(("product", value, max(variance, alone[1]), influence))
        found.append((name, *alone))
        if "cell" in name:
            rest = product(data, corrections, cells)
            both = (one + other for one, other in zip(alone, rest, strict=True))
            found.append((f"{name} and the product within", *both))
    return found


def adaptive(data, corrections):
    """The chosen names, their mean, the shrunken value, the standard error and z."""
    found = candidates(data, corrections)
    known = [one for one in found if one[2] > 0] or found
    best = max(known, key=lambda c: c[1] - 3 * np.sqrt(c[2]))
    least = best[1] - 3.7 * np.sqrt(best[2]) - 1e-9 * abs(best[1] - 3 * np.sqrt(best[2]))
    near = [c for c in known if c is not best and c[1] - 3 * np.sqrt(c[2]) >= least]
    names, values, variances, influences = zip(best, *near, strict=True)
    value, variance, influence = np.mean(values), max(variances), np.mean(influences, axis=0)
    certain = np.inf if value > 0 else 0.0
    z = max((c[1] / np.sqrt(c[2]) for c in known if c[2] > 0), default=certain)
    share = data.weight / data.weight.sum()
    hajek = np.sum(share**2 * (influence - share @ influence) ** 2)
    error = np.sqrt(max(variance, hajek - variance))
    shrunk = value * max(0, 1 - 1 / z**2) if value > 0 else value
    return list(names), value, shrunk, error, z
