"""What happened to the transactions of several ranges together."""

from dataclasses import fields
from operator import add

from streaming.rules.transaction_fold import TransactionOutcome


def together(one: TransactionOutcome, later: TransactionOutcome) -> TransactionOutcome:
    """The sum of both, column by column."""
    both = [(field.name, getattr(one, field.name), getattr(later, field.name)) for field in fields(TransactionOutcome)]
    return TransactionOutcome(**{name: tuple(map(add, a, b)) if isinstance(a, tuple) else a + b for name, a, b in both})
