import pytest
from each_case import for_each
from hypothesis import given, settings


@pytest.fixture(
    params=[pytest.param(3, id="quick"), pytest.param(40, id="thorough", marks=pytest.mark.slow)]
)
def check(request):
    """Run a property on generated arguments: a few, or with ``-m slow`` many.

    With a list of notions each sample is checked under all of them, ``notion``.
    """

    def run(holds, notions=None, examples=1, **strategies):
        number = examples * request.param - (notions is not None and request.param == 3)
        options = {"max_examples": number, "derandomize": True, "deadline": None}

        def under_each(**drawn):
            for_each(notions, lambda notion: holds(notion=notion, **drawn))

        settings(**options)(given(**strategies)(holds if notions is None else under_each))()

    return run
