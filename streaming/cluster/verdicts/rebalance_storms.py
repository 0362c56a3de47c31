"""Which groups rebalance all the time: more often than a deployment makes them, and still.

A member that is replaced makes two generations, one when it leaves and one when it comes; with a cooperative assignor three, for members
give back what it is to get, and join once more. So a deployment of any size has at most `STORM_RATIO` generations for each member.
"""

from collections.abc import Mapping

from streaming.cluster.consumers.group_rebalances import Lately, all_lately
from streaming.cluster.consumers.group_snapshot import GroupSnapshot

STORM_RATIO = 3
"""So many generations a member are none yet."""

STORM_GOES_ON_MS = 600_000
"""A group that has not rebalanced for so long does so no more. A container that crashes again and again is started after five minutes."""


def rebalance_storms(snapshot: GroupSnapshot, now_ms: int) -> Mapping[str, Lately]:
    """What those groups have of late that rebalance all the time, by name."""
    found = all_lately(snapshot.rebalances, snapshot.groups, now_ms)
    return {name: each for name, each in found.items() if each.per_member > STORM_RATIO and now_ms - each.last_ms < STORM_GOES_ON_MS}
