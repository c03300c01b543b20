"""The claims of README and the pages: sentences with a measured number, or without exception."""

from __future__ import annotations

import doctest
import re
from typing import NamedTuple

import numpy as np
from pages import DOC, TEXTS

# Lists of names, changes, rules and files; tables that a study wrote are evidence themselves.
NOT_READ = re.compile(
    r"(changelog|contributing|citing|evidence|levels(?:_of_tests)?|benchmarks)\.rst|api/"
)
READ = {"README.md": (DOC.parent / "README.md").read_text(encoding="utf-8")} | {
    page: text for page, text in TEXTS.items() if not NOT_READ.match(page)
}
ABSOLUTE = re.compile(r"\b(?:every|all|never|always|same|none|identical|exact(?:ly)?)\b", re.I)
VERSION = r"(?:scikit-learn|torchmetrics|netcal|probmetrics|MAPIE|rms|Python|version|numpy|scipy)"
UNIT = r"(?:%|times\b|ms\b|s\b|GB\b|MB\b|seconds?\b|minutes?\b|points?\b)"
NUMBER = re.compile(rf"(?<![\w.,/])\d[\d,]*(?:\.\d+(?!\w|\.)|(?:\.\d+)? {UNIT})")
LINK = re.compile(
    r":doc:`[^`]*\b(?:validation/index|evidence|benchmarks|levels)>?`|:ref:`|\btests/\w+/\w+\.py"
)
DIRECTIVE = re.compile(
    r"\.\. (?:code-block|meta|image|csv-table|toctree|decision-tree|needs|button|grid::|py:|Draws)"
)
UNDERLINE = re.compile(r"([=\-~^])\1{3,}$")
NO_PROSE = re.compile(r"\s*([=\-~^])\1{3,}|\s*:\w+:(?!`)|\s*\.\. [\w-]+::")
FOUND = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
FIGURE = re.compile(r"[\d.,%±–() -]+(?: to [\d.,%]+)?(?: %)?")  # a cell; its sentence is a claim
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z0-9`*\[(:\"])")


class Claim(NamedTuple):
    """A sentence with the paragraph in which it stands."""

    page: str
    sentence: str
    paragraph: str


def paragraphs(text):
    """Return paragraphs, items and cells of a page, without code, headings and options."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    lines, kept, number = text.splitlines(), [], 0
    while number < len(lines):
        line = lines[number]
        depth = len(line) - len(line.lstrip())
        number += 1
        if DIRECTIVE.match(line.strip()):
            while number < len(lines) and (
                not lines[number].strip() or lines[number].startswith(" " * (depth + 1))
            ):
                number += 1
            line = ""
        elif line.lstrip().startswith(">>>"):
            while number < len(lines) and lines[number].strip():
                number += 1
            line = ""
        elif UNDERLINE.match((lines[number:] or [""])[0]) or NO_PROSE.match(line):
            line = ""
        cell = re.match(r"\s*(?:\* - |- |\* |\d\. )", line)
        kept += ["", line[cell.end() :]] if cell else [line]
    return [" ".join(one.split()) for one in "\n".join(kept).split("\n\n") if one.strip()]


def claims_of(page, text):
    """Return the claims of a page."""
    return [
        Claim(page, sentence, paragraph)
        for paragraph in paragraphs(text)
        for sentence in SENTENCE.split(paragraph)
        if says_something(sentence) and not FIGURE.fullmatch(sentence)
    ]


def without_names(sentence):
    """Return a sentence without its code and the versions of packages."""
    return re.sub(rf"``?[^`]*``?|{VERSION} \d\S*", "", sentence)


def says_something(sentence):
    """Whether a sentence has a number or a word without exception."""
    words = without_names(sentence)
    return bool(NUMBER.search(words) or (ABSOLUTE.search(words) and len(words.split()) > 3))


def shown_by(text):
    """What the code of a page says and prints, which tests hold."""
    examples = doctest.DocTestParser().get_examples(text) if ">>>" in text else []
    return " ".join(one.source + one.want for one in examples)


def is_held(claim, shown):
    """Whether the page holds it: its numbers are printed there, or a measurement is linked."""
    if LINK.search(claim.paragraph):
        return True
    numbers, words = numbers_in(claim.sentence), without_names(claim.sentence)
    return not ABSOLUTE.search(words) and all(stand_in(shown, numbers))


def numbers_in(sentence):
    """Return the numbers of a claim, as they are written."""
    return [one.split()[0].replace(",", "") for one in NUMBER.findall(without_names(sentence))]


def stand_in(text, numbers):
    """Whether numbers stand in a text, with as many digits or more, also as shares of 1."""
    values = np.array([float(one.replace(",", "")) for one in FOUND.findall(text)])
    digits = [len(one.partition(".")[2]) for one in numbers]
    wanted = [float(one) for one in numbers]
    return [
        bool(np.any(np.abs(np.r_[values, 100 * values] - one) <= 0.5001 * 10.0**-digit))
        for one, digit in zip(wanted, digits, strict=True)
    ]


def open_claims():
    """Return the claims that the pages do not hold by themselves."""
    return [
        claim
        for page, text in READ.items()
        for claim in claims_of(page, text)
        if not is_held(claim, shown_by(text))
    ]


if __name__ == "__main__":
    for claim in open_claims():
        print(f"{claim.page} | {claim.sentence}")
