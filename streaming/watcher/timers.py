"""When what is done at intervals is done next, by a clock that may be set back."""


def is_due(now: int, at: int, interval: int) -> bool:
    """Whether what is done every ``interval`` and next at ``at`` is due; all are of one unit."""
    return now >= at or at - now > interval
