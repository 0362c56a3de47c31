"""Brokers that a job serves as JSON: whether each serves, what it leads and holds, and who watches it.

Times are Unix milliseconds, sizes bytes, rates a second. In memory -1 means "not known" or "none", and never 0; in JSON that is null.
"""

from dataclasses import dataclass

from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import ListPage

BROKERS_PATH = "/api/v1/brokers"
"""`BrokerPage`, by ``?sort=FIELD&order=asc|desc&filter=TEXT&offset=N&limit=N``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow(PublicMessage):
    """One broker.

    ``phase``: a word of `streaming.kafka.formats.metadata_brokers.Phase`, "" if nothing shows it; ``phase_ms``: since when at the latest.
    ``agent`` watches its log dirs, of which there are ``log_dirs``; ``behind_ms``: as in `AgentState`. ``leaders``, ``replicas``,
    ``out_of_sync`` and ``size_bytes`` are of the replicas on it that are watched. ``bytes_rate``: appended to those that it leads.
    ``kind`` to ``since_ms``: the worst problem of the broker itself, its log dirs or its agent.
    """

    broker: int
    phase: str = ""
    phase_ms: int = -1
    agent: str = ""
    agent_up: bool = False
    behind_ms: int = -1
    leaders: int = -1
    replicas: int = -1
    out_of_sync: int = -1
    bytes_rate: float = -1.0
    size_bytes: int = -1
    log_dirs: int = -1
    kind: str = ""
    severity: str = ""
    since_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPage(ListPage):
    """Brokers."""

    rows: list[BrokerRow]
