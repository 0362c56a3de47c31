"""When offsets of groups that nobody uses expire: `OffsetExpirationConditionImpl`."""

from typing import Any

from streaming.cluster.consumers.group_uncommitted import expirations
from tests.consumers.group_agents import GROUP
from tests.consumers.group_world import world
from tests.tables import each_row

HOUR_MS = 3_600_000
COMMITTED_MS, EMPTY_MS = 5_000, 700_000


def expiration(group: dict[str, Any] | None, **commit: Any) -> int:
    job = world()
    job.agents["a1"].commit(3, commit_ms=COMMITTED_MS, **commit)
    job.agents["a1"].groups_ = [] if group is None else [GROUP | group]
    snapshot = job.round()
    return int(expirations(snapshot.rows, snapshot.groups, HOUR_MS)[0])


@each_row(
    ("group", "since"),
    [
        (None, COMMITTED_MS),
        ({"type": "Classic", "protocol": "consumer", "state": "Empty", "state_ms": EMPTY_MS}, EMPTY_MS),
        ({"type": "Classic", "protocol": "consumer", "state": "Empty", "state_ms": -1}, COMMITTED_MS),
        ({"type": "Classic", "protocol": "", "state": "Empty"}, COMMITTED_MS),
        ({"type": "Classic", "protocol": "consumer", "state": "Stable", "topics": ["other"]}, COMMITTED_MS),
        ({"type": "Consumer", "topics": ["other"]}, COMMITTED_MS),
        ({"type": "Streams", "protocol": "streams", "topics": []}, COMMITTED_MS),
    ],
)
def test_an_offset_expires_the_retention_after_its_last_use(group: dict[str, Any] | None, since: int) -> None:
    assert expiration(group) == since + HOUR_MS


@each_row(
    "group",
    [
        {"type": "Classic", "protocol": "consumer", "state": "Stable", "topics": []},
        {"type": "Classic", "protocol": "consumer", "state": "Stable", "topics": ["orders"]},
        {"type": "Classic", "protocol": "connect", "state": "PreparingRebalance"},
        {"type": "Consumer", "topics": ["orders"]},
        {"type": "Share", "protocol": "share", "topics": []},
    ],
)
def test_an_offset_in_use_does_not_expire(group: dict[str, Any]) -> None:
    assert expiration(group) == -1


def test_an_early_version_says_itself_when_it_expires() -> None:
    assert expiration(None, expire_ms=123_456) == 123_456
