"""The only module that imports private or version-dependent names of scikit-learn."""

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

__all__ = ["HasMethods", "Interval", "StrOptions", "_fit_context"]
