"""The random numbers of R's default generator, which simulate the data of its packages' manuals."""

import numpy as np
from scipy.special import ndtri

_NORMAL = 2**27  # R draws a normal number from two uniform ones


class RRandom:
    """``set.seed(seed)`` of R ≥ 3.6: Mersenne Twister, normal numbers by inversion."""

    def __init__(self, seed):
        keys = []
        for k in range(50 + 625):
            seed = (69069 * seed + 1) % 2**32
            if k > 50:  # the first is replaced by the position
                keys.append(seed)
        self._bits = np.random.MT19937()
        state = self._bits.state
        state["state"] = {"key": np.array(keys, dtype=np.uint64), "pos": 624}
        self._bits.state = state

    def uniform(self, n):
        """``runif(n)``."""
        return self._bits.random_raw(n) * 2.3283064365386963e-10

    def normal(self, n):
        """``rnorm(n)``."""
        first, second = self.uniform(2 * n).reshape(n, 2).T
        return ndtri((np.floor(_NORMAL * first) + second) / _NORMAL)

    def bernoulli(self, chance):
        """``rbinom(n, 1, chance)``."""
        rarer = np.minimum(chance, 1 - chance)
        found = self.uniform(len(chance)) >= 1 - rarer
        return np.where(chance > 0.5, ~found, found).astype(int)
