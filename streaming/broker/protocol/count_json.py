"""How many records there are, as JSON: what ``segtail count --json`` prints, and what a job serves of the logs that it follows."""

from dataclasses import dataclass, field

from streaming.broker.protocol.away_json import AwayBroker
from streaming.broker.protocol.json_message import PublicMessage

COUNT_PATH = "/api/v1/count"
"""`CountPage`, by ``?by=topic|partition&topic=NAME&filter=TEXT&offset=N&limit=N``."""

BY_TOPIC, BY_PARTITION = BY = ("topic", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRow(PublicMessage):
    """One partition by the replica that is shown for it, or one topic: then ``partition`` and the values of one log are absent.

    ``first_offset`` and ``next_offset``: the offsets between which it was counted, from the log start (or from the first that is on this
    disk) to the high watermark (or to the end of the log if that is not known).

    ``data`` records, of which ``aborted`` belong to aborted transactions; ``control`` records; ``readable``: data that is not aborted and
    below the last stable offset, which is what consumers of committed data get. ``waiting``: data between that offset and the high
    watermark. All of these are absent if the log could not be counted, with the ``error``; the last two also if the last stable offset is
    not known. Of a topic, a sum is absent if it is for one of the ``partitions``, and the ``error`` is the first of theirs.

    ``unreplicated``: data records after the high watermark. ``remote_offsets``: offsets that are only in remote storage.
    """

    topic: str
    partition: int = -1
    partitions: int = 1
    broker: int = -1
    leader: bool = False
    first_offset: int = -1
    next_offset: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    data: int = -1
    aborted: int = -1
    control: int = -1
    readable: int = -1
    waiting: int = -1
    unreplicated: int = -1
    remote_offsets: int = -1
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPage(PublicMessage):
    """Some rows from ``offset`` on, of the ``matched`` ones that were asked for; there are ``total``. They are sorted by their names.

    ``at_ms``, ``version``, ``doubts``, ``away``: as in `streaming.broker.protocol.listing_json.ListPage`. ``by``: what a row is.
    """

    at_ms: int
    version: str = ""
    doubts: list[str] = field(default_factory=list)
    by: str
    total: int
    matched: int
    offset: int
    rows: list[CountRow]
    away: list[AwayBroker] = field(default_factory=list)
