"""Options that a public function uses beside each other, for tests of several settings."""

from skcal._sklearn_compat import refuse_unused
from skcal._validation import InputError


def used(function, **options):
    """Return the options without those that the function would refuse as unused."""
    while True:
        try:
            refuse_unused(function, options)
        except InputError as error:
            options = {name: value for name, value in options.items() if name != error.argument}
        else:
            return options
