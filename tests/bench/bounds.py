"""How much the benches of a running job do: small unless told otherwise."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """``seconds`` is the length of each measurement; the job warms up for as long before it."""

    seconds: float = 20.0
    active: int = 1_000
    mostly_idle: int = 10_000
    agents: int = 100
    partitions: int = 4_000
    logs: int = 100_000
    gigabytes: tuple[float, ...] = (2.0, 6.0)
