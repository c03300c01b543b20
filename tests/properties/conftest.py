import pytest
from each_case import for_each
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(
    params=[pytest.param(3, id="quick"), pytest.param(40, id="thorough", marks=pytest.mark.slow)]
)
def check(request):
    """Run a property on generated arguments: a few, or with ``-m slow`` many.

    With a list of notions it is checked as often for each of them, ``notion``.
    """

    def run(holds, notions=None, examples=1, **strategies):
        options = {"max_examples": examples * request.param, "derandomize": True, "deadline": None}

        def generate(**more):
            settings(**options)(given(**more, **strategies)(holds))()

        if notions is None:
            generate()
        else:
            for_each(notions, lambda notion: generate(notion=st.just(notion)))

    return run
