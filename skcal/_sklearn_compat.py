"""The only module that imports private or version-dependent names of scikit-learn."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from inspect import Signature
from threading import Lock

from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import validate_params as _validate_params
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import _check_method_params, _num_samples

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class _NoContext:
        """Stands for a callback context where there are no callbacks."""

        def subcontext(self, **options):
            return self

        def propagate_callback_context(self, sub_estimator):
            return nullcontext()

        def call_on_fit_task_begin(self, **arguments):
            return self

        def call_on_fit_task_end(self, **arguments):
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Without callbacks: `verbose` shows progress."""

        def set_callbacks(self, *callbacks):
            raise ImportError(
                "Callbacks need scikit-learn 1.9 or later: pip install 'skcal[progress]'."
            )

        def _init_callback_context(self, **options):
            return _NoContext()


def as_tasks(results: Iterable, names: Iterable[str], estimator, context) -> Iterator:
    """Yield results, telling the callbacks of an estimator when each begins and is there."""
    results = iter(results)
    for name in names:
        task = context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=estimator)
        result = next(results)
        task.call_on_fit_task_end(estimator=estimator)
        yield result


_blas_lock = Lock()
_blas_holders: set[object] = set()
_blas_before: list[tuple] = []  # the libraries, and how many threads each had


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Leave BLAS one thread until the last who is inside, in whatever thread of Python, has left.

    How many threads BLAS has is said once for the whole process.
    """
    holder = object()
    try:
        _hold(holder)
        yield
    finally:
        try:
            _release(holder)
        except BaseException:  # an interrupt just now
            _release(holder)
            raise


def _hold(holder):
    with _blas_lock:
        _blas_holders.add(holder)
        if not _blas_before:
            blas = _get_threadpool_controller().select(user_api="blas").lib_controllers
            _blas_before.extend([(library, library.num_threads) for library in blas])
            for library, _ in _blas_before:
                library.set_num_threads(1)


def _release(holder):
    with _blas_lock:
        _blas_holders.discard(holder)
        if not _blas_holders:
            for library, count in _blas_before:
                library.set_num_threads(count)
            _blas_before.clear()


class _NamingSignature(Signature):
    """Lets errors of ``bind`` name the function and the parameter that may be meant."""

    name = "function"

    def bind(self, /, *args, **kwargs):
        try:
            return super().bind(*args, **kwargs)
        except TypeError as error:
            known = [name for name in self.parameters if name != "self"]
            unknown = [name for name in kwargs if name not in known]
            text = re.sub("^(too|multiple)", r"got \1", str(error))
            if unknown:
                close = get_close_matches(unknown[0], known, n=1, cutoff=0.7)
                text += f". Did you mean {close[0]!r}?" if close else f". Use {', '.join(known)}."
            elif "too many" in text:
                text += ". Pass options by name."
            raise TypeError(f"{self.name}() {text}") from None


def validate_params(parameter_constraints, **options):
    """scikit-learn's decorator, which binds the arguments by the function's signature.

    A wrapper would add a frame, and warnings would name its line.
    """
    decorate = _validate_params(parameter_constraints, **options)

    def named(function):
        function.__signature__ = _NamingSignature.from_callable(function)
        function.__signature__.name = function.__qualname__
        return decorate(function)

    return named


__all__ = [
    "BaseScorer",
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "_check_method_params",
    "_fit_context",
    "_num_samples",
    "_routing_enabled",
    "_safe_indexing",
    "as_tasks",
    "one_blas_thread",
    "validate_parameter_constraints",
    "validate_params",
]
