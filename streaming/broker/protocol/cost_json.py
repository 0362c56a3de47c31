"""What a scrape of a job costs, as it serves it as JSON: series and bytes, by metric and by topic."""

from dataclasses import dataclass, field

from streaming.broker.protocol.json_message import PublicMessage

COST_PATH = "/api/v1/cost"
"""`Cost`."""

MOST_TOPICS = 100
"""The most topics of one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(PublicMessage):
    """The share of one metric, or of one topic, in a page."""

    name: str
    series: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(PublicMessage):
    """The last scrape that was answered, at ``at_ms`` (-1: none was yet); its page took ``duration_ms`` to make, and to pack where it was.

    ``bytes``: before compression. ``series_dropped``: so many series are left out because of ``series_limit`` or ``label_limit``.
    ``metrics`` and ``topics``: the largest share first; ``topics`` are at most `MOST_TOPICS`, and ``omitted_topics`` are left out.
    """

    at_ms: int = -1
    series: int = 0
    bytes: int = 0
    duration_ms: int = -1
    series_dropped: int = 0
    metrics: list[Share] = field(default_factory=list)
    topics: list[Share] = field(default_factory=list)
    omitted_topics: int = 0
