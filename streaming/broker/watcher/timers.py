"""Timers for repeated work, by a clock that may be set back."""


def is_due(now: int, at: int, interval: int) -> bool:
    """Whether work is due that is done every ``interval``, and next at ``at``; all are of one unit."""
    return now >= at or at - now > interval
