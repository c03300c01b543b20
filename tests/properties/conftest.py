import pytest
from each_case import for_each
from hypothesis import given, settings


@pytest.fixture(params=["quick", pytest.param("thorough", marks=pytest.mark.slow)])
def check(request):
    """Run a property on generated arguments: a few, or with ``-m slow`` many.

    With a list of notions each sample is checked under all of them, ``notion``.
    """

    def run(holds, notions=None, examples=1, **strategies):
        number = 40 if request.param == "thorough" else 3 if notions is None else 2
        options = {"max_examples": examples * number, "derandomize": True, "deadline": None}

        def under_each(**drawn):
            for_each(notions, lambda notion: holds(notion=notion, **drawn))

        settings(**options)(given(**strategies)(holds if notions is None else under_each))()

    return run
