"""Names that are cut to fit never look alike, wherever several stand together."""

import re

import numpy as np
import pytest
from report_cases import binary

from skcal import calibration_report
from skcal._show import Table, broken, cut_apart, one_line
from skcal.displays import draw
from skcal.sample import read_sample

STATUS = [
    f"verification_status = {name}" for name in ("Verified", "Not Verified", "Source Verified")
]
LONG = [f"{'a' * 40}{middle}{'b' * 40}" for middle in ("", "x", "xx", "y")]


def test_short_names_and_single_long_ones_stay_as_they_were():
    names = ["a", "b", "c" * 90, "a"]
    assert cut_apart(names, 24) == [one_line(name, 24) for name in names]
    assert cut_apart([], 24) == []


def test_the_start_that_names_share_is_cut():
    shown = cut_apart(STATUS, 24)
    assert shown == [
        "verification_st…Verified",
        "verificatio…Not Verified",
        "verifica…Source Verified",
    ]
    regions = [f"region = state_of_the_loan_{name}" for name in ("Verified", "Not Verified")]
    assert cut_apart(regions, 24) == ["region = state_…Verified", "region = st…Not Verified"]


@pytest.mark.parametrize("width", [1, 4, 18, 24])
def test_names_break_at_blanks_and_underscores(width):
    for name in (*STATUS, *LONG, "hospital_00", "a b", ""):
        lines = broken(name, width).split("\n")
        assert max(map(len, lines)) <= width
        assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert broken("centre = university_hospital_00", 18) == "centre =\nuniversity_\nhospital_00"


@pytest.mark.parametrize("n_rows", [40, 41])
def test_a_table_of_a_page_that_hides_rows_says_so(n_rows):
    shown = Table(("name", "n"), [(str(k), k) for k in range(n_rows)]).html()
    assert ("skcal-long" in shown) == ("41 rows: scroll in the table" in shown) == (n_rows > 40)


def test_titles_of_diagrams_in_a_page_tell_subgroups_apart():
    y, p = binary()
    by = np.array([f"{'a_long_name_of_a_purpose_' * 2}{end}" for end in ("one", "two")])
    report = calibration_report(y, p, by=by[np.arange(len(y)) % 2], n_resamples=19)
    alts = re.findall('alt="Reliability diagram: ([^"]*)"', report._repr_html_())
    assert len(set(alts)) == len(alts) >= 2


@pytest.mark.parametrize("width", [1, 4, 8, 14, 24, 40])
@pytest.mark.parametrize("seed", range(20))
def test_names_that_differ_never_look_alike(width, seed):
    rng = np.random.default_rng(seed)
    parts = ["status", "=", "Not", "Verified", "long_column_name", "ab", "abc", "x" * 30, "1", "2"]
    made = [" ".join(rng.choice(parts, rng.integers(1, 9))) for _ in range(40)]
    for names in (made, STATUS, LONG, [*LONG, *STATUS, "…", "a…b"]):
        shown = cut_apart(names, width)
        assert len(set(shown)) == len({one_line(name, 10**6) for name in names})


def test_every_table_of_a_report_and_every_title_tells_names_apart():
    y, p = binary()
    by = np.array(STATUS)[np.arange(len(y)) % 3]
    options = {"n_resamples": 19}
    report = calibration_report(y, p, by={"the_status_of_this_loan": by}, **options)
    table = str(report).partition("\nsubgroup ")[2].partition("\nEach limit")[0]
    names = [re.split(r" {2,}", line.strip())[0] for line in table.splitlines()[1:]]
    names = "".join(names).replace(" ", "")
    for part in report.subgroups:  # in full, on several lines
        assert part.name.replace(" ", "") in names
    proba = np.random.default_rng(0).dirichlet(np.ones(3), len(y))
    titles = draw.problem_titles(read_sample(by, proba, notion="classwise"))
    assert len(set(titles)) == 3
    years = 2023, 2024
    first, second = (f"a gradient boosting classifier of {year} that team A made" for year in years)
    both = calibration_report(y, p, compare=p**1.1, name=first, compare_name=second, **options)
    [head] = [line for line in str(both).splitlines() if "…2023" in line]
    assert "…2024" in head


def test_titles_of_subgroups_hold_their_names_in_full():
    y, p = binary()
    by = np.array(["Mercy Hospital West", "University Clinic of the North"])[np.arange(len(y)) % 2]
    report = calibration_report(y, p, by={"admitting_hospital": by}, n_resamples=19)
    titles = [ax.get_title() for ax in report.plot(by=True).figure_.axes]
    titles = [" ".join(title.split()) for title in titles if title]
    for part in report.subgroups:
        assert any(title.startswith(part.name) for title in titles)
