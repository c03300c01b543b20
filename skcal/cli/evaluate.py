"""The command ``evaluate`` and the demonstration: the answer, and the searches on request."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import time
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any
from warnings import warn

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcal import CalibrationErrorSearchCV
from skcal._show import as_data, on_command_line, one_line, printable, share, stated, wrapped
from skcal.cli.gates import (
    WORST_FIRST,
    chosen_notions,
    notes_of_gate,
    status_of_gate,
    table_of_gate,
    whole_of,
)
from skcal.cli.predictions import Predictions
from skcal.report import Findings
from skcal.report.words import likeness

_PATIENCE = 2.0  # seconds before progress is shown
_MINUTES = 120.0  # seconds from which on minutes are shown
_ROWS = 25  # of a table of a gate, of which the worst stand first
_NO_LIMIT = "Pass or fail needs a limit: --max-error."


def demonstration(options):
    """Out-of-fold predictions of an overconfident classifier and of a tree ensemble."""
    X, y = load_digits(return_X_y=True)
    for classifier in (GaussianNB(), RandomForestClassifier(random_state=options.seed)):
        proba = cross_val_predict(classifier, X, y, cv=5, method="predict_proba")
        name = f"{type(classifier).__name__} on scikit-learn's digits, out of fold"
        yield name, Predictions(proba, y, np.arange(10), resolution=options.resolution)


def evaluate(name, predictions, options, gate=None) -> dict:
    """Print the answer for each notion unless JSON is wanted, and return all numbers.

    Searches run with ``--details``, for an error that they estimate, and for vectors. What a gate
    says, as of :func:`skcal.cli.gates.gate_of_errors`, stands below the title of the answer.
    """
    kinds = [] if gate else list(dict.fromkeys(options.error or []))
    report: dict = {"name": name, "answers": [], "searches": []}
    shown = printable(" ".join(name.split()))
    texts = [f"{shown}\n{'=' * len(shown)}"]
    if gate is not None:
        texts.append(wrapped(status_of_gate(gate["results"])))
    if predictions.groups is None and options.command == "evaluate":
        sample = predictions.rows
        for text in likeness(sample.proba_of_classes, sample.happened):
            warn(text, stacklevel=2)
    notions = chosen_notions(options, predictions.proba)
    report["read_as"] = predictions.sample(notions[0]).read_as
    for notion in notions:
        if notion.scalar:
            about = {"max_error": options.max_error, "n_jobs": options.n_jobs}
            findings = Findings.of(predictions.sample(notion), name, **about)
            by = "" if options.by else predictions.subgroups or "COLUMN"
            with on_command_line(options.only, by):
                answer = findings.answer
            report["answers"].append(_answer_as_data(findings, answer))
            shown_answer = _answer_in_words if gate is None else _answer_beside_gate
            texts += shown_answer(findings, answer, options)
        if options.details or kinds or not notion.scalar:
            search = _search(predictions, notion, options)
            errors = [search.error(kind) for kind in kinds]
            facts = {**search.to_dict(), "errors": [error.to_dict() for error in errors]}
            report["searches"].append(facts)
            if not notion.scalar:
                verdict, _, p = search.verdict()[0].sentence().partition(" (")
                texts.append(f"{verdict.upper()} ({p}.")
            texts.append("\n".join([search.summary(), *(error.line(23) for error in errors), ""]))
    if gate is not None:
        most = sys.maxsize if options.all_rows else _ROWS
        texts += _lines_of_gate(gate["results"], options.details, most)
        if predictions.subgroups is not None and not options.by:
            by = f"--by {shlex.quote(predictions.subgroups)}"
            texts.append(f"Subgroups were not compared; {by} decides for each of them.")
    if not options.json:
        options.print("\n".join([*texts, printable(wrapped(report["read_as"]))]))
    return report


def _answer_in_words(findings, answer, options) -> list[str]:
    """The verdict, what it is about with the mean prediction, and the sentences of an answer."""
    notion, heading, view = findings.notion, findings.heading, findings.overview
    if notion.of_positive_class:
        heading += f" All predictions average {share(view.mean_predictions[-1])}."
    elif not notion.by_class:
        heading += f" All confidences average {share(view.mean_confidence)}."
    verdict = answer.verdict()
    if options.command == "evaluate":  # the demonstration has no such option
        verdict = f"{verdict} {_NO_LIMIT}"
    return [verdict, wrapped(heading), wrapped(" ".join(answer.sentences)), ""]


def _answer_beside_gate(findings, answer, options) -> list[str]:
    """Return the answer without its sentences, since the rows of the gate say more."""
    heading = wrapped(findings.heading)
    if options.details:
        return [heading, "", wrapped(str(answer)), ""]
    return [
        heading,
        *[f"{stated(whole_of(options.only))[:-1]}: {answer.title}."] * (not options.by),
    ]


def _lines_of_gate(results, full, most) -> list[str]:
    """The sentences of one result or of all, or a table of at most ``most``, the worst first."""
    results = sorted(results, key=lambda facts: WORST_FIRST.index(facts["verdict"]))
    if full or len(results) == 1:
        return [wrapped(facts["reading"]) for facts in results]
    n_shown = len(results) if len(results) <= most else most - 1
    lines = table_of_gate(results, n_shown) + notes_of_gate(results)
    if n_shown < len(results):
        lines.append(f"… and {len(results) - n_shown:,} more rows: --all-rows shows them")
    return lines


def _answer_as_data(findings, answer) -> dict:
    """The answer with the numbers that it rests on."""
    return {
        "notion": str(findings.notion),
        "title": answer.title,
        "sentences": answer.sentences,
        **as_data({"overview": findings.overview, "test": findings.test, "error": findings.error}),
        **as_data({"gate": findings.gate, "gain": findings.gain, "ranges": findings.ranges}),
    }


def _search(predictions, notion, options) -> CalibrationErrorSearchCV:
    """A fitted search, with its progress."""
    search = CalibrationErrorSearchCV(
        notion=notion,
        labels=predictions.classes,
        cv=options.cv,
        outer_cv=options.outer_cv,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=1,
    )
    with shown_progress(options):
        weights = {"sample_weight": predictions.weight, "groups": predictions.groups}
        return search.fit(predictions.proba, predictions.labels, **weights)


@contextmanager
def shown_progress(options):
    """Show what is printed in the block as one line of the terminal that is replaced.

    Without a terminal, or with ``--quiet``, nothing is shown.
    """
    line = ProgressLine(None if options.quiet else sys.stderr)
    try:
        with redirect_stdout(line):  # the standard output itself has the results
            yield
    finally:
        line.clear()


class ProgressLine(io.TextIOBase):
    """A line of a terminal that is replaced, once some seconds are over, with the time left.

    Parameters
    ----------
    terminal : stream or None
        What is no terminal gets nothing.
    """

    def __init__(self, terminal):
        self.start = time.monotonic()
        self._terminal: Any = terminal if terminal is not None and terminal.isatty() else None
        self._shown = False

    def write(self, text):
        """Show the last of the lines of a text."""
        lines = text.strip().splitlines()
        seconds = time.monotonic() - self.start
        if lines and self._terminal is not None and seconds > _PATIENCE:
            what = printable(lines[-1].partition("] ")[2] or lines[-1])  # without who says it
            progress = progress_in_words(what, seconds)
            self._replace(one_line(progress, shutil.get_terminal_size().columns - 1))
            self._shown = True
        return len(text)

    def clear(self):
        """Leave an empty line."""
        if self._shown:
            self._replace("")
        self._shown = False

    def _replace(self, text):
        with suppress(OSError):
            self._terminal.write(f"\r{text}\x1b[K")  # to the end of the line
            self._terminal.flush()


def progress_in_words(text: str, seconds: float) -> str:
    """What was done, what comes next and about how long it takes, from a line of progress.

    Of "3 of 9, Binning: …; next Stacking" it shows the numbers and the last name.
    """
    steps = re.match(r"(\d+) of (\d+), .*?(?:; next (.*))?$", text)
    if steps is None:
        return f"{seconds:.0f} s: {text}"
    done, n_steps = map(int, steps.groups()[:2])
    if done == n_steps:
        return f"{seconds:.0f} s: {done} of {n_steps} done, now the estimates"
    left = seconds * (n_steps - done) / max(done, 1)
    shown = f"about {left:.0f} s left" if left < _MINUTES else f"about {left / 60:.0f} min left"
    return f"{seconds:.0f} s, {shown}: {done} of {n_steps} done, now {steps[3] or 'the next'}"
