"""A time that passes only when a test says so."""


class Clock:
    """``now`` is what it shows, in the unit of whoever asks; ``slept`` are the pauses that were asked for."""

    def __init__(self, now: float = 100) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
