"""Whose turn it is if each of many is to have one in a given time, however often that is asked: by time, so a busy agent does no more."""


class RegularTurns:
    """Turns go round by number, and those that are due since the last question come at once; a clock that goes back costs one question.

    Args:
        period_ms: in this time each has one turn.
    """

    def __init__(self, period_ms: int) -> None:
        self._period_ms = period_ms
        self._asked_ms: int | None = None
        self._next = 0
        self._owed = 0  # turns times the period: what is left of a turn is not lost

    def due(self, many: int, now_ms: int) -> list[int]:
        """The numbers, from 0 to ``many`` - 1, whose turn has come since the last call, each once; the first call only begins to count."""
        passed = 0 if self._asked_ms is None else min(max(0, now_ms - self._asked_ms), self._period_ms)
        self._asked_ms = now_ms
        turns, self._owed = divmod(self._owed + many * passed, self._period_ms)
        turns = min(turns, many)
        numbers = [(self._next + turn) % many for turn in range(turns)]
        self._next = (self._next + turns) % max(1, many)
        return numbers
