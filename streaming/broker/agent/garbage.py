"""How often an agent's process looks for cycles among its objects: rarely, because it makes hardly any and has very many objects."""

import gc

NEW_OBJECTS = 50_000
"""So many more objects than at the last look until the youngest are looked through: a poll makes thousands, and frees as many."""


def collect_rarely() -> None:
    """For the whole process: with Python's own numbers, a fifth of a poll of 1,000 logs that grow was spent on such looks."""
    gc.set_threshold(NEW_OBJECTS, 20, 20)
