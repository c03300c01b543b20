"""Reports make few draws and fits, and the figures of a cached report are drawn once."""

import pytest
from report_cases import USUAL, draw_few

from skcal import Sample
from skcal.report import compare, findings, views

DRAWN = {}  # their text, and what was drawn, which is kept: its identity is the key


def once(draw):
    def cached(*arguments):
        report, parts = [None, *arguments][-2:]
        key = (draw.__name__, views._can_draw(), id(report), *map(id, parts))
        if key not in DRAWN:
            DRAWN[key] = draw(*arguments), (report, *parts)
        return DRAWN[key][0]

    return cached


@pytest.fixture(autouse=True, scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        draw_few(patch)
        patch.setattr(findings, "_FOLDS", 2)
        patch.setattr(compare, "_DRAWS_A_GROUP", 10)
        yield


@pytest.fixture
def usual_draws(quick, monkeypatch):
    """As many draws as users get."""
    monkeypatch.setattr(Sample, "default_resamples", USUAL)


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch):
    for draw in (views._figures, views._curves):
        monkeypatch.setattr(views, draw.__name__, once(draw))
