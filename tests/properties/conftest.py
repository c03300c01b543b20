from itertools import count
from zlib import crc32

import pytest
from each_case import for_each
from hypothesis import given, seed, settings


@pytest.fixture(params=["quick", pytest.param("thorough", marks=pytest.mark.slow)])
def check(request):
    """Run a property on generated arguments: one, or with ``-m slow`` many.

    With a list of notions each sample is checked under all of them, ``notion``.
    """

    def run(holds, notions=None, examples=1, **strategies):
        quick = request.param == "quick"
        number = examples if quick else 40 * examples
        calls = count()

        def checked(**drawn):
            # The first sample is the smallest, two equal rows: EDGE_CASES holds the like.
            if next(calls) == 0 and quick:
                return
            if notions is None:
                holds(**drawn)
            else:
                for_each(notions, lambda notion: holds(notion=notion, **drawn))

        options = {"max_examples": number + quick, "database": None, "deadline": None}
        drawing = seed(crc32(request.node.name.encode()))
        settings(**options)(drawing(given(**strategies)(checked)))()

    return run
