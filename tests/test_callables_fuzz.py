"""Every public name under odd containers, dtypes, weights, orders and threads.

What says the same is answered as the plain arrays are; what no one can read is refused by an error
that names the argument. Nothing else may happen: no other error, no warning of numpy, no NaN that
is not documented, no change of the input or of what the process shares.
"""

import inspect
import random
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass

import numpy as np
import pytest
from fuzz_calls import CALLS, OTHER_METHODS, needed_by
from fuzz_samples import draw, plain_arguments
from process_state import process_state
from scipy.linalg import LinAlgWarning
from test_documentation import LISTED

from skcal._border import keeping_filters

# Public names that are no call of their own, beside classes of results.
WITHOUT_CALL = {
    "BilinearFunction": "the base class of functions",
    "ClassifierProbabilities": "hands everything to the classifier",
    "make_distorted": "draws as make_tempered does",
    "prepare": "takes a metric and what it read",
    "prepared_by": "decorates a metric",
    "boundary": "takes numbers alone: test_sequences",
    "lower_bound": "takes numbers alone: test_sequences",
}
TRUSTED = ("skcal.notions.", "skcal.pair_risk.", "skcal.kernels.", "skcal.datasets.")
# Where weights are told as they are, or count repeated rows of which one is left out.
TELLS_WEIGHTS = {
    "CalibrationAccumulator",
    "calibration_bins",
    "cox_recalibration",
    "kernel_density_calibration_error",
    "segment_test",  # rounding orders equal p-values
}
# Documented as NaN, or infinite, where there is nothing to tell of.
MAY_BE_NAN = re.compile(
    r"_test .*(standard_error|estimate|class_pvalues|class_statistics)$|calibration_bins"
    r"|_curve .*(standard_error|estimate|low|high)|measures .mean_prediction.(low|high)$"
    r"|Monitor.*(e_value|detector|frame|history|\.[01]$)|Estimator.*standard_error$"
    r"|Display|report|Recalibrator|ClassifierCV|Monitor .2"  # results of the same as data
)


def name_of(call):
    return re.sub(r"^datasets\.|\..*|\(.*", "", call) if "." in call or "(" in call else call


def numbers(result, name="", depth=0):
    """All numbers of a result, by where they stand, in order."""
    if depth > 8 or result is None or isinstance(result, str | bytes | bool) or callable(result):
        return {}
    if hasattr(result, "to_numpy"):
        result = result.to_numpy()
    if isinstance(result, np.ndarray):
        if result.dtype.kind in "biuf":
            with np.errstate(over="ignore"):  # of what is too large for float64
                return {name: result.astype(np.float64).ravel()}
        result = result.tolist() if result.dtype.kind == "O" else []
    if isinstance(result, float | int | np.number):
        return {name: np.array([float(result) if abs(result) < 1e300 else np.inf])}
    if isinstance(result, list | tuple) and not hasattr(result, "_fields"):
        parts = enumerate(result)
    else:
        fields = result._asdict() if hasattr(result, "_fields") else result
        fields = fields if isinstance(fields, dict) else getattr(result, "__dict__", {})
        parts = [(key, one) for key, one in fields.items() if str(key)[:1] != "_"]
    found = {}
    for key, one in parts:
        key = re.sub(r"((?:class|predicted) \d)\.0", r"\1", str(key))  # as labels are written
        found |= numbers(one, f"{name}.{key}", depth + 1)
    return found


def said(call, arguments):
    """The numbers of a call, or the error."""
    try:
        found = CALLS[call].function(**arguments)
        with keeping_filters():
            return numbers(found)
    except (ValueError, TypeError) as error:
        return error


class Plain(dict):
    """What the plain arrays are answered, by call and sample."""

    def __missing__(self, key):
        self[key] = said(key[0], plain_arguments(*key[1:]))
        return self[key]


NAMES = re.compile(
    r"\b(y_true|y_proba|y_proba_[ab]|y_before|y_after|proba|labels|sample[ _]weights?|weights?|"
    r"notion|pos_label|residuals|pvalues|e_values|n_samples|columns?|class(es)?|samples?|[PyX])\b"
    r"|text|parameter|predictions|predict_proba|to_json|1D array",
    re.IGNORECASE,
)


def one_call(job, plain):
    """Name and outcome of one random call: "answered", "refused" or what went wrong."""
    call, seed = job
    with keeping_filters():  # pandas sets filters where frames are made
        given = draw(CALLS[call], np.random.default_rng(seed))
    before = {key: look(one) for key, one in given.arguments.items()}
    try:
        found = CALLS[call].function(**given.arguments)
        with keeping_filters():
            found = numbers(found)
    except (ValueError, TypeError) as error:
        found = error
    except Exception as error:
        if CALLS[call].foreign and isinstance(error, OverflowError | RuntimeWarning):
            return call, "refused"
        return call, f"seed {seed}, {given.told}: {repr(error)[:300]} {place(error)}"
    if before != {key: look(one) for key, one in given.arguments.items()}:
        return call, f"seed {seed}, {given.told}: the input was changed"
    wrong = judge(call, given, found, plain)
    if wrong:
        return call, f"seed {seed}, {given.told}: {wrong}"
    return call, "refused" if isinstance(found, Exception) else "answered"


@keeping_filters()
def look(one):
    """What an argument holds, for comparison."""
    if isinstance(one, np.ndarray) and one.dtype.kind in "biuf":
        return one.tobytes()
    return repr(one)


def place(error):
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if "skcal/" in one.filename] or frames
    return f"{own[-1].filename.rpartition('skcal/')[2]}:{own[-1].lineno}"


def judge(call, given, found, plain):
    """What is wrong with an answer or a refusal, or an empty string."""
    refused = isinstance(found, Exception)
    if refused and CALLS[call].foreign:
        return ""
    if refused and not NAMES.search(str(found)):
        return f"names no argument: {found!r} {place(found)}"
    if given.broken:
        return "" if refused or given.may_answer else "was answered"
    expected = plain[call, *given.sample]
    if isinstance(expected, Exception) or refused:
        if given.scaled and name_of(call) in TELLS_WEIGHTS:
            return ""
        same = isinstance(expected, Exception) and refused
        return "" if same else f"{expected!r:.200} is now {found!r:.300}"
    nan = {key for key, one in expected.items() if not np.isfinite(one).all()}
    nan = {key for key in nan if not MAY_BE_NAN.search(f"{call} {key}")}
    if nan:
        return f"not finite as plain arrays: {nan}"
    if (given.coarse and not CALLS[call].exact) or CALLS[call].lenient:
        return ""
    if given.scaled and name_of(call) in TELLS_WEIGHTS:
        return ""
    # scikit-learn's accuracy refuses numbers in an object array.
    ignored = {".score", ".0.score", ".1.score"}
    shapes = (
        {key: one.shape for key, one in said.items() if key not in ignored}
        for said in (expected, found)
    )
    if next(shapes) != next(shapes):
        return f"other numbers: {expected.keys() ^ found.keys()}"
    rtol, atol = (1e-3, 1e-4) if given.coarse else (1e-6, 1e-8)
    for key, one in expected.items():
        if re.search(r"(fit|score)_time|seconds", key):
            continue
        same = np.isclose(found.get(key, one), one, rtol, atol, equal_nan=True)
        # A logarithm is cut where the type has its precision.
        if not same.all() and not key.endswith("log_loss"):
            k = int(np.argmin(same))
            return f"{key}[{k}] {one[k]} is now {found[key][k]}"
    return ""


def is_result(thing):
    """Whether it is what other calls return."""
    return is_dataclass(thing) or (inspect.isclass(thing) and issubclass(thing, tuple))


def test_every_public_name_is_called_or_said_why_not():
    called = {name_of(call) for call in CALLS}
    for name, thing in LISTED.items():
        short = name.rpartition(".")[2]
        trusted = name.startswith(TRUSTED) and not short.startswith(("make_d", "make_t"))
        why_not = short in WITHOUT_CALL or is_result(thing) or trusted
        assert (short in called) != why_not, name


def test_every_method_is_asked_with_a_sample_or_said_why_not():
    for name, cls in LISTED.items():
        if inspect.isclass(cls) and not name.startswith((*TRUSTED, "skcal.displays.")):
            for key in dir(cls):
                if inspect.isfunction(getattr(cls, key)) and not key.startswith(("_", "set_")):
                    takes = dict(list(inspect.signature(getattr(cls, key)).parameters.items())[1:])
                    assert key in OTHER_METHODS or set(needed_by(takes)) <= {"X", "y"}, (name, key)


def jobs(count, plain):
    """Calls with probabilities that fall with what they cost, none less than 1 in 2,000."""
    cost = {}
    for call, one in CALLS.items():
        given = draw(one, np.random.default_rng(0), plain=True)
        start = time.perf_counter()
        said(call, given.arguments)
        cost[call] = time.perf_counter() - start
    chance = np.array([1 / max(0.002, one) for one in cost.values()])
    chance = np.maximum(chance / chance.sum(), 0.0005)
    rng = random.Random(0)
    return [(call, rng.randrange(2**31)) for call in rng.choices(list(cost), chance, k=count)]


def table_of(outcomes):
    """Lines of names, with how many calls were answered, refused, and went wrong."""
    counts = Counter(
        (name, one if one in ("answered", "refused") else "wrong") for name, one in outcomes
    )
    kinds = ("answered", "refused", "wrong")
    lines = [f"{'':50}" + "".join(f"{kind:>10}" for kind in kinds)]
    for name in sorted({name for name, _ in outcomes}):
        lines.append(f"{name:50}" + "".join(f"{counts[name, kind]:10}" for kind in kinds))
    total = (sum(counts[name, kind] for name in CALLS) for kind in kinds)
    return [*lines, f"{'together':50}" + "".join(f"{one:10}" for one in total)]


@pytest.mark.filterwarnings("ignore", "error::RuntimeWarning", "ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize(
    "count", [pytest.param(250, id="quick"), pytest.param(10**5, marks=pytest.mark.slow)]
)
def test_any_call_is_answered_as_the_plain_call_or_refused(count):
    wrong = run(count)
    assert not wrong, "\n".join(wrong[:20])


def run(count):
    pytest.importorskip("matplotlib")
    plain = Plain()
    todo = jobs(count, plain) if count > 1000 else quick_jobs(count)
    before = process_state()
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda job: one_call(job, plain), todo))
    after = process_state()
    wrong = [f"{name}, {one}" for name, one in outcomes if one not in ("answered", "refused")]
    wrong += [
        f"{key}: {before[key]} is now {after[key]}" for key in after if after[key] != before[key]
    ]
    if count > 1000:
        print(*table_of(outcomes), *wrong, sep="\n", file=sys.__stdout__)
    return wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "rounds", [pytest.param(1, id="quick"), pytest.param(8, marks=pytest.mark.slow)]
)
def test_filters_of_warnings_are_set_where_they_are_kept(rounds, monkeypatch):
    pytest.importorskip("matplotlib")
    outside, enter = [], warnings.catch_warnings.__enter__

    def watched(self):
        if not keeping_filters._inside:
            outside.append("".join(traceback.format_stack(limit=8)))
        return enter(self)

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", watched)
    plain = Plain()
    for call, one in CALLS.items():
        for seed in range(rounds * (1 if one.seldom and rounds == 1 else 2)):
            one_call((call, seed), plain)
    assert not outside, outside[0]


def quick_jobs(count):
    cheap = [call for call, one in CALLS.items() if not one.seldom]
    rng = random.Random(1)
    return [(rng.choice(cheap), rng.randrange(2**31)) for _ in range(count)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", RuntimeWarning)
    warnings.simplefilter("ignore", LinAlgWarning)
    sys.exit(bool(run(int(sys.argv[1]))))
