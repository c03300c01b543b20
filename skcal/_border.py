"""Between the package and its callers: what all threads share is as before when a call returns.

Classes and decorators of scikit-learn after which settings are restored, and contexts that give
filters of warnings and threads of BLAS back when the last thread has left.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Signature
from threading import RLock
from traceback import clear_frames
from types import FunctionType
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn import get_config, set_config
from sklearn.base import BaseEstimator as _BaseEstimator
from sklearn.base import ClassifierMixin as _ClassifierMixin

from skcal._sklearn_compat import _get_threadpool_controller
from skcal._sklearn_compat import validate_params as _validate_params


def alone(lock, function: Callable, *args, **kwargs):
    """``function(*args, **kwargs)`` while no other thread holds the lock.

    A ``with`` that is interrupted between the lock and its block would keep it for ever, as Python
    3.14 allows.
    """
    try:
        lock.acquire()
        return function(*args, **kwargs)
    finally:  # of no function of Python, which an interrupt may stop before the lock is free
        try:  # noqa: SIM105
            lock.release()
        except RuntimeError:  # interrupted before it was acquired
            pass


class _Together:
    """A context of the whole process, from when the first thread enters until the last has left.

    Parameters
    ----------
    read : callable
        Returns what is to be restored.
    change, restore : callable
        Are given that.
    """

    def __init__(self, read: Callable, change: Callable, restore: Callable) -> None:
        self._read, self._change, self._restore = read, change, restore
        self._before: Any = None
        self._forget_others()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_others)

    def _forget_others(self):
        """A forked child has none of the other threads, one of which may have held the lock."""
        self._lock = RLock()
        self._inside: set[object] = set()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        holder = object()
        try:
            alone(self._lock, self._enter, holder)
            yield
        finally:
            try:
                alone(self._lock, self._leave, holder)
            except BaseException:  # an interrupt just now
                alone(self._lock, self._leave, holder)
                raise

    def _enter(self, holder):
        self._inside.add(holder)
        if self._before is None:
            self._before = self._read()
            self._change(self._before)

    def _leave(self, holder):
        self._inside.discard(holder)
        if not self._inside and self._before is not None:
            self._restore(self._before)
            self._before = None


def _blas_threads():
    """The BLAS libraries of more threads than one, and how many."""
    blas = _get_threadpool_controller().select(user_api="blas").lib_controllers
    return [(library, count) for library in blas if (count := library.num_threads) > 1]


def _of_each_thread(library):
    """Whether each thread says its own number, which threadpoolctl tells of OpenMP alone."""
    return getattr(library, "threading_layer", "") == "openmp"


def _shared_blas_threads():
    return [one for one in _blas_threads() if not _of_each_thread(one[0])]


def _one_thread(before):
    for library, _ in before:
        library.set_num_threads(1)


def _threads_as(before):
    for library, own in before:
        if library.num_threads == 1:
            _free(library)
            library.set_num_threads(own)
            _free(library)


def _free(library):
    """Let any thread set the number: threadpoolctl 3.8 keeps it to the first that did."""
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)


_one_shared_blas_thread = _Together(_shared_blas_threads, _one_thread, _threads_as)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products in one thread; of libraries whose threads all share one number, for all of them."""
    own = [one for one in _blas_threads() if _of_each_thread(one[0])]
    try:
        _one_thread(own)
        with _one_shared_blas_thread():
            yield
    finally:
        _threads_as(own)


_FIXED = re.compile("FixedFormatter should only be used together with FixedLocator", re.I)
_PASSING = [
    ("error", None, np.exceptions.ComplexWarning, None, 0),  # arrays
    ("error", None, np.exceptions.VisibleDeprecationWarning, None, 0),  # labels
    ("error", None, LinAlgWarning, None, 0),  # logistic regression
    ("ignore", re.compile("Ill-conditioned matrix", re.I), LinAlgWarning, None, 0),  # scipy 1.13
    ("ignore", None, RuntimeWarning, None, 0),  # missing values of pandas
    ("ignore", None, UserWarning, None, 0),  # dtypes of pandas
    ("always", None, DeprecationWarning, None, 0),
    ("ignore", _FIXED, Warning, None, 0),  # labels of axes
]


def _passing_filters():
    """Filters of warnings that libraries set for an instant, where they are set."""
    return [one for one in warnings.filters if one in _PASSING]


def _drop_filters(before):
    for one in _passing_filters():
        if one not in before:
            with suppress(ValueError):  # another thread was faster
                warnings.filters.remove(one)  # type: ignore[attr-defined]


# Around checks of scikit-learn, data frames, axes and the estimators of others. Their
# ``catch_warnings`` restores what each thread found, so that threads which overlap leave the filter
# of one of them to the process.
keeping_filters = _Together(_passing_filters, lambda before: None, _drop_filters)


class ClassifierMixin(_ClassifierMixin):
    """scikit-learn's, whose ``score`` sets filters of warnings for an instant."""

    score = keeping_filters()(_ClassifierMixin.score)


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


def restoring(function):
    """The function, after whose interrupt scikit-learn's and numpy's settings are as before.

    What sets them for an instant may itself be interrupted before it restores; of what its frames
    hold, a context restores what it found when they are cleared, which may be another's.
    """

    @wraps(function)
    def restored(*args, **kwargs):
        config, errors = get_config(), np.geterr()
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            clear_frames(interrupt.__traceback__)
            set_config(**config)
            np.seterr(**errors)
            raise

    return restored


class BaseEstimator(_BaseEstimator):
    """scikit-learn's, whose public methods in this package restore settings when interrupted."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and name[0] != "_":
                setattr(cls, name, restoring(method))

    @classmethod
    @cache
    def _get_param_names(cls):
        return super()._get_param_names()  # reads the signature, at each clone and each check


def validate_params(parameter_constraints, **options):
    """scikit-learn's decorator, which binds the arguments by the function's signature."""
    decorate = _validate_params(parameter_constraints, **options)

    def named(function):
        function.__signature__ = _NamingSignature.from_callable(function)
        function.__signature__.name = function.__qualname__
        return restoring(decorate(function))

    return named
