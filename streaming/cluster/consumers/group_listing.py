"""Which partitions of consumer groups are listed one by one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All partitions, or those that are later than ``late_after_ms``, the ``late_limit`` latest at most."""

    partitions: bool = False
    late_after_ms: int = 300_000
    late_limit: int = 1000


LATE_ONES = Listing()
