"""Callbacks of long fits, as scikit-learn's progress bar needs them."""

import pytest
from sklearn.naive_bayes import GaussianNB

from skcal import (
    CalibrationErrorSearchCV,
    RecalibratedClassifierCV,
    Recalibrator,
    TemperatureScaling,
    Zero,
)
from skcal._sklearn_compat import as_tasks
from skcal.datasets import make_tempered
from skcal.functions import Binning


class Log:
    """A callback that is passed on to inner estimators and writes down what it is told."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", type(estimator).__name__))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", type(estimator).__name__))

    def names(self, kind):
        return [event[1] for event in self.events if event[0] == kind]


DATA = make_tempered(120, n_classes=2, temperature=2.0, n_truth_draws=0, random_state=0)


@pytest.mark.parametrize(
    ("estimator", "X", "n_leaves"),
    [
        (CalibrationErrorSearchCV([Zero(), Binning()], cv=3, random_state=0), DATA.proba, 2),
        (Recalibrator([TemperatureScaling()], cv=3, random_state=0), DATA.proba, 6),
        (
            RecalibratedClassifierCV(GaussianNB(), Recalibrator([TemperatureScaling()]), cv=3),
            DATA.proba[:, :1],
            9,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as")
def test_every_task_that_begins_ends_and_the_root_is_torn_down(estimator, X, n_leaves):
    pytest.importorskip("sklearn.callback")
    log = Log()
    fitted = estimator.set_callbacks(log).fit(X, DATA.labels)
    name = type(estimator).__name__
    assert fitted is estimator
    assert log.events[0] == ("setup", name)
    assert log.events[-1] == ("teardown", name)
    assert sorted(log.names("begin")) == sorted(log.names("end"))
    leaves = [event for event in log.events if event[0] == "begin" and event[2] == 0]
    assert len(leaves) == n_leaves
    estimator.set_callbacks().fit(X, DATA.labels)
    assert log.events[-1] == ("teardown", name)


def test_a_fit_that_fails_tears_down():
    pytest.importorskip("sklearn.callback")
    log = Log()

    class Fails(Zero):
        def feature_map(self, X):
            raise RuntimeError("no features today")

    search = CalibrationErrorSearchCV([Zero(), Fails()], cv=3).set_callbacks(log)
    with pytest.raises(RuntimeError, match="today"):
        search.fit(DATA.proba, DATA.labels)
    assert log.events[-1] == ("teardown", "CalibrationErrorSearchCV")


def test_older_versions_of_scikit_learn_name_what_to_install():
    try:
        import sklearn.callback  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"pip install 'scikit-learn>=1\.9'"):
            Recalibrator().set_callbacks(Log())


class _Context:
    """A context that writes down the order of what happens."""

    def __init__(self, log):
        self.log = log

    def subcontext(self, task_name):
        self.log.append(task_name)
        return self

    def call_on_fit_task_begin(self, estimator):
        self.log.append("begin")

    def call_on_fit_task_end(self, estimator):
        self.log.append("end")


def test_a_task_ends_before_its_result_is_used():
    log = []
    for value in as_tasks(iter([1, 2]), ["a", "b"], None, _Context(log)):
        log.append(value)
    assert log == ["a", "begin", "end", 1, "b", "begin", "end", 2]
