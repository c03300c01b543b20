"""Samples that the tests of estimators and searches share."""

import pytest


@pytest.fixture
def data(tempered):
    """300 predictions over 4 classes, and labels."""
    return tempered[0][:300], tempered[1][:300]


@pytest.fixture
def split(tempered):
    """Training and evaluation samples for a notion; "binary" takes one-dimensional input."""

    def make(notion="confidence", n_train=400, n_test=150):
        proba, labels = tempered
        if notion == "binary":
            proba, labels = proba[:, 0], (labels == 0).astype(int)
        test = slice(n_train, n_train + n_test)
        return (proba[:n_train], labels[:n_train]), (proba[test], labels[test])

    return make
