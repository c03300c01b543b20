"""The e-process by its definition: laws of each tilt, products over samples, sums over starts."""

import numpy as np

from skcal.monitoring.bets import Batch, tilt_families


def law(p, psi):
    weights = [pk * np.exp(one) for pk, one in zip(p, np.broadcast_to(psi, len(p)), strict=True)]
    return [weight / sum(weights) for weight in weights]


def learned(family, batches):
    """Sums that decay by the samples after them, from all batches at once."""
    sums = np.zeros_like(family.sums)
    for k, memory in enumerate(family.memories):
        for i, batch in enumerate(batches):
            later = sum(other.weight.sum() for other in batches[i + 1 :])
            sums[k] += np.exp(-later / memory) * family.sums_of(batch)
    return sums


def likelihood_ratios(batches, n_columns):
    """Likelihood ratios (n_batches, n_tilts), row by row."""
    ratios = []
    for i, batch in enumerate(batches):
        row = []
        for family in tilt_families(n_columns):
            if family.sums.size:
                family.sums = learned(family, batches[:i])
            for k in range(family.n_tilts):
                psi = np.broadcast_to(family.tilt(batch, k), batch.proba.shape)
                ratio = 1.0
                for p, one, y, w in zip(batch.proba, psi, batch.code, batch.weight, strict=True):
                    ratio *= (law(p, one)[y] / p[y]) ** w
                row.append(ratio)
        ratios.append(row)
    return np.array(ratios)


def prior(n_columns):
    families = tilt_families(n_columns)
    total = sum(family.share for family in families)
    parts = [f.share / total * f.weights for f in families]
    return np.concatenate(parts)


def waiting_for(batches):
    """Wealth that is not yet bet before each batch, and after the last."""
    variance = [sum(w * (p * (1 - p)).sum() for p, w in rows_of(b)) / 2 for b in batches]
    later = 0.8 * (1 + np.cumsum(variance) / 100) ** -0.3
    return np.concatenate([[1.0], later])


def rows_of(batch):
    return zip(batch.proba, batch.weight, strict=True)


def e_process(batches, n_columns):
    """E_t and D_t after all batches, as sums over tilts and starts."""
    ratios = likelihood_ratios(batches, n_columns)
    sizes = np.array([batch.weight.sum() for batch in batches])
    waiting = waiting_for(batches)
    e_value, detector = waiting[-1], 0.0
    for tilt, weight in enumerate(prior(n_columns)):
        for start in range(len(batches)):
            product = np.prod(ratios[start:, tilt])
            e_value += weight * (waiting[start] - waiting[start + 1]) * product
            detector += weight * sizes[start] * product
    return 0.75 * e_value + 0.25 * evidence_of_bias(batches), detector


def evidence_of_bias(batches):
    """The mean over signs and rates of products over samples."""
    residuals = np.concatenate([batch.hit - batch.expected for batch in batches])
    rates = [0.9 / 2**k for k in range(16)]
    factors = [
        np.prod([np.exp(s * r * d - (-np.log1p(-r) - r) * d**2) for d in residuals])
        for s in (1, -1)
        for r in rates
    ]
    return np.mean(factors)


def make_batches(sizes, n_columns, rng, tilt=1.0):
    """Batches of outcomes that are calibrated for ``tilt=1``."""
    batches = []
    for size in sizes:
        proba = rng.dirichlet(np.full(n_columns, 0.7), size)
        truth = proba**tilt / (proba**tilt).sum(axis=1, keepdims=True)
        code = (truth.cumsum(axis=1) < rng.uniform(size=(size, 1))).sum(axis=1)
        features = proba[:, 1:] if n_columns == 2 else proba
        outcomes = np.eye(n_columns)[code]
        outcomes = outcomes[:, 1:] if n_columns == 2 else outcomes
        batches.append(Batch.of(features, outcomes, np.ones(size)))
    return batches
