"""Which groups rebalance all the time: more often than a deployment makes them, and still.

A member that is replaced makes two generations, one when it leaves and one when it comes; with a cooperative assignor three, for members
give back what it is to get, and join once more. So a deployment of any size has at most `STORM_RATIO` generations for each member. What was
before a pause, and a few, do not count: see `Lately.ratio`, which the alert goes by, too.
"""

from collections.abc import Mapping

from streaming.cluster.consumers.group_rebalances import Lately, all_lately
from streaming.cluster.consumers.group_snapshot import GroupSnapshot

STORM_RATIO = 3
"""So many generations a member are none yet."""


def rebalance_storms(snapshot: GroupSnapshot, now_ms: int) -> Mapping[str, Lately]:
    """What those groups have of late that rebalance all the time, by name."""
    found = all_lately(snapshot.rebalances, snapshot.groups, now_ms)
    return {name: each for name, each in found.items() if each.ratio > STORM_RATIO}
