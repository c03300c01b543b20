"""The names of columns, and words in cells, that people and their programs use: one table."""

from __future__ import annotations

import re

_TABLE = """
label: label labels y y_true y_test target outcome class truth true_label true_class actual
  actual_class obs observed gold gold_label ground_truth reference
what happened: death dead died deceased mortality survival survived outcome event churn churned
  default defaulted readmitted readmission relapse recurrence fraud converted conversion clicked
  click purchased purchase bought cancelled canceled attrition diagnosis response responded
id: id ids nr uuid guid pid uid qid mrn ssn hash
row: row rows rowname rownames rowindex index idx no nr
owner: patient pat patientin subject subj person participant respondent user username customer
  client kunde account member household family student pupil employee borrower animal eye record
  case sample question prompt problem item doc document text article image img picture photo video
  clip recording speaker author device machine sensor session encounter admission stay episode claim
  policy loan order match game team athlete mother prof psu cluster
beside: id ids nr uuid guid pid uid qid mrn ssn hash number num no key name code index idx tag
model: model classifier algorithm engine version variant
whole model: .config mtry system
training: train training learn learning in_sample apparent
test: test testing validation validate valid val holdout dev oot oos out_of_sample out_of_time
fold: fold repeat rep boot resample split cv train test
count: freq frequency frequencies count counts n nobs n_obs num_obs n_rows n_samples n_cases
  num_cases cases trials fw fwt fweight fweights frequency_weight freq_weight
plain weight: w wt wgt weight weights
total: total totals grand_total subtotal sum mean average avg overall gesamt summe mittelwert
  durchschnitt somme moyenne suma media promedio totale totaal gemiddelde
beside total: sd std stdev median min max minimum maximum count n range
positive: yes true positive pos y t event case correct ja oui sí
negative: no false negative neg n f no_event control incorrect none nein non
number of rows: id inst row index no nr doc_id
of probability: p prob probs proba probability pred score of class y
"""
_RIGHT = ["1", "true", "t", "yes", "y", "right", "correct", "pass", "passed", "c", "accurate"]
_WRONG = ["0", "false", "f", "no", "n", "wrong", "incorrect", "fail", "failed", "i", "inaccurate"]
#: Words for right and wrong answers, in pairs.
RIGHT_WRONG = list(zip(_RIGHT, _WRONG, strict=True))
_PATTERNS = {
    "percent": r"%|(?<![a-z])(pct|percent|percentage|prozent)(?![a-z])",
    "log-odds": r"score|logit|margin|raw|decision|linear|log.?odds|(^|[\W_])(xb|lp|eta)([\W_]|$)",
    "predicted": r"pred|guess|classif|assigned|scored|decision|_hat",
    "list of classes": r"label|class|categor",
    "key of a class": r"label|name|class|token|categor|predict|answer|option",
    "key of a number": r"prob|score|conf",
}
#: Of sample weights, whose names no body's weight has.
_WEIGHTS = re.compile(
    r"(p|f|a|i|fnl|final|sampl(e|ing)|survey|design|analy(sis|tic)|person|household|hh|per|"
    r"instance|importance|observation|obs|propensity|population|probability|replicate|"
    r"(post)?strat(ification)?|inverseprobability)(weight|wgt|wt)s?|s?ip[tc]?w|llcpwt|wt(mec|int)\d+yr"
)


def folded(name: str) -> str:
    """A name in lower case, without signs between its words."""
    return re.sub(r"[\W_]", "", name).casefold()


_FOLDED = {
    kind: frozenset(map(folded, words.split()))
    for kind, words in re.findall(r"^(\w[\w ]*): (.*(?:\n  .*)*)", _TABLE, re.MULTILINE)
}


def is_known(kind: str, name: str) -> bool:
    """Whether a name, or a word, is one of a kind in the table."""
    return folded(name) in _FOLDED[kind]


def looks_like(kind: str, name: str) -> bool:
    """Whether a part of a name says that it is one of a kind."""
    return re.search(_PATTERNS[kind], name, re.IGNORECASE) is not None


def words_of(kind: str) -> frozenset[str]:
    """All names of a kind, as :func:`folded` gives them."""
    return _FOLDED[kind]


def is_of_weights(name: str) -> bool:
    """Whether nothing but sample weights has this name."""
    return _WEIGHTS.fullmatch(folded(name)) is not None


def last_word(name: str) -> tuple[str, set[str]]:
    """The last word of a name, and the words behind it that say no more than that it is a name.

    These are patient and {id} of PatientID, patient_id and patientid.
    """
    words = re.findall(r"[A-Z]?[a-zäöü]+|[A-Z]+(?![a-z])", name)
    words = [part for word in words for part in _apart(word.lower())]
    beside = []
    while words and is_known("beside", words[-1]):
        if len(words) == 1 and is_known("row", words[-1]):
            break
        beside.append(words.pop())
    return (words[-1] if words else ""), set(beside)


def _apart(word: str) -> list[str]:
    start = word.removesuffix("id")
    return [start, "id"] if start in _FOLDED["row"] | _FOLDED["owner"] and start != word else [word]


def says_what_happened(name: str) -> bool:
    """Whether a word of a name is one of an outcome, such as death of "Death, 30 days"."""
    return any(is_known("what happened", word) for word in re.findall(r"[^\W\d_]+", name))


def kind_of_samples(name: str) -> int:
    """2 of a name of what has several samples, 1 of a name of rows, 0 of another."""
    last, beside = last_word(name)
    if last in _FOLDED["row"] or name in ("", "#"):
        return 1
    return 2 if last in _FOLDED["owner"] or beside & _FOLDED["id"] else 0


def names_models(name: str) -> bool:
    """Whether a name is one of what tells models apart, such as model_id or modelVersion."""
    return last_word(name)[0] in _FOLDED["model"] or is_known("whole model", name)


def names_parts(name: str) -> bool:
    """Whether a name is one of the column of SAS that is 1 in rows of training."""
    return name.strip("_").lower() in ("partind", "partition") or name.lower() == "_part_"
