"""Where each view of the page is, with names percent-encoded: a name may contain anything."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

HOME, PARTITIONS, TRANSACTIONS, RETENTION, GROUPS, COST = "/", "/partitions", "/transactions", "/retention", "/groups", "/cost"
EVENTS = "/events"
TOPICS, BROKERS, DISKS, SEARCH = "/topics", "/brokers", "/disks", "/search"
RUNBOOKS = "/runbooks"
STATIC = "/static/"

_DOTS = (".", "..", "")
"""Names that are no segment of a path: browsers take these away, encoded or not."""


def topic_link(topic: str) -> str:
    """The view of one topic."""
    return link(TOPICS, {"topic": topic}) if topic in _DOTS else f"{TOPICS}/{_encode(topic)}"


def broker_link(broker: int) -> str:
    """The row of one broker."""
    return link(BROKERS, {"filter": f"broker {broker} "})


def log_dir_link(log_dir: str) -> str:
    """The row of a log dir, on each broker that has one with this path."""
    return link(DISKS, {"filter": log_dir})


def partition_link(topic: str, partition: int) -> str:
    """The view of one partition."""
    if topic in _DOTS:
        return link(PARTITIONS, {"topic": topic, "partition": str(partition)})
    return f"{PARTITIONS}/{_encode(topic)}/{partition}"


def group_link(group: str) -> str:
    """The view of one consumer group."""
    return link(GROUPS, {"group": group}) if group in _DOTS else f"{GROUPS}/{_encode(group)}"


def moment_link(at_ms: int) -> str:
    """How everything was at a time, Unix milliseconds."""
    return link(HOME, {"at": str(at_ms)})


def link(path: str, parameters: Mapping[str, str]) -> str:
    """A path with parameters."""
    return f"{path}?{urlencode(parameters, errors='replace')}" if parameters else path


def _encode(name: str) -> str:
    return quote(name, safe="", errors="replace")
