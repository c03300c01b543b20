"""The only module that imports private or version-dependent names of scikit-learn."""

from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
    validate_params,
)
from sklearn.utils.parallel import _get_threadpool_controller

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class _NoContext:
        """Stands for a callback context where there are no callbacks."""

        def subcontext(self, **options):
            return self

        def call_on_fit_task_begin(self, **arguments):
            return self

        def call_on_fit_task_end(self, **arguments):
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Without callbacks: `verbose` shows progress."""

        def _init_callback_context(self, **options):
            return _NoContext()


def limit_blas_threads(limit: int | None):
    """Context in which BLAS uses at most so many threads; None leaves them as they are."""
    return _get_threadpool_controller().limit(limits=limit, user_api="blas")


__all__ = [
    "BaseScorer",
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "_fit_context",
    "limit_blas_threads",
    "validate_parameter_constraints",
    "validate_params",
]
