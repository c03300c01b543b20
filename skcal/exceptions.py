"""The error that skcal raises where an input is wrong."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(ValueError):
    """A ValueError that names the argument, the first wrong row, the reason and the remedy.

    The text is "{lead}{argument} row {row}, column {column} {reason} {remedy}". A program that
    knows a better remedy, such as one that reads files, raises an error with :meth:`message` of
    that remedy.

    Parameters
    ----------
    argument : str
        Name of the argument.
    reason : str
        The predicate of the sentence with its full stop, or what follows the place if it begins
        with ``:`` or ``.``.
    remedy : str, default=""
        What to do, in whole sentences.
    row, column : int, default=None
        The first offender, counted from 0.
    lead : str, default=""
        Words that scikit-learn's own checks expect before the rest.
    kind : {"", "sum", "logits", "range", "integers", "classes", "positive class", …}, default=""
        The failure, by which callers choose another remedy.

    Examples
    --------
    >>> import skcal
    >>> from skcal.exceptions import InputError
    >>> try:
    ...     skcal.Sample([0, 1], [0.2, 1.3])
    ... except InputError as error:
    ...     print(error.argument, error.row, error.reason)
    y_proba 1 is 1.3, not a probability in [0, 1].
    """

    def __init__(self, argument, reason, remedy="", *, row=None, column=None, lead="", kind=""):
        super().__init__(argument, reason, remedy)  # which pickles pass again
        self.argument, self.reason, self.remedy = argument, reason, remedy
        self.row, self.column, self.lead, self.kind = row, column, lead, kind

    def message(self, remedy=None, row=None, column=None, argument=None) -> str:
        """Return the message with another remedy, or other words for the place.

        Parameters
        ----------
        remedy, row, column, argument : str, default=None
            What stands in their place; None: the error's own.
        """
        if row is None and self.row is not None:
            row = f"row {self.row}"
        if column is None and self.column is not None:
            column = f"column {self.column}"
        place = " ".join(
            [argument or self.argument, ", ".join(part for part in (row, column) if part)]
        ).strip()
        space = "" if self.reason.startswith((":", ".")) else " "
        remedy = self.remedy if remedy is None else remedy
        return f"{self.lead}{place}{space}{self.reason} {remedy}".rstrip()

    def with_remedy(self, remedy: str | None) -> InputError:
        """Return the error with another remedy, unless that is None.

        Parameters
        ----------
        remedy : str or None
            What to do, in whole sentences.
        """
        parts = {name: getattr(self, name) for name in ("row", "column", "lead", "kind")}
        remedy = self.remedy if remedy is None else remedy
        return InputError(self.argument, self.reason, remedy, **parts)

    def __str__(self):
        return self.message()
