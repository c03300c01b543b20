import pytest
from hypothesis import given, settings


@pytest.fixture(
    params=[pytest.param(3, id="quick"), pytest.param(40, id="thorough", marks=pytest.mark.slow)]
)
def check(request):
    """Run a property on generated arguments: a few, or with ``-m slow`` many."""

    def run(holds, examples=1, **strategies):
        options = {"max_examples": examples * request.param, "derandomize": True, "deadline": None}
        settings(**options)(given(**strategies)(holds))()

    return run
