"""Many small checks in one test, whose failures are told together, each by its name."""

import pytest


def for_each(cases, check):
    """Call ``check(case)`` for every case, and fail with what went wrong in each that does."""
    cases, errors = list(cases), []
    assert cases
    for case in cases:
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"case: {case}")
            errors.append(error)
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} of {len(cases)} cases", errors)
