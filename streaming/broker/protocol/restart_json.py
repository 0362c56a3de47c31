"""Whether a broker may be restarted, as JSON: what a job serves, and ``segtail restart-check --json`` prints."""

from dataclasses import dataclass, field
from typing import Annotated

from streaming.broker.protocol.json_message import Count, Heading, Id, Names, PublicMessage, Sentence, Word

RESTART_PATH = "/api/v1/restart"
"""`RestartPage`, of all brokers or by ``?broker=ID``; ``&accept=CODE,...`` are reasons that count as costs."""

SAFE, UNSAFE, UNKNOWN = "safe", "unsafe", "unknown"
"""The words of ``verdict``."""

REASONS = (
    "offline",
    "under_min_isr",
    "not_replicated",
    "no_controller",
    "quorum",
    "log_dir",
    "cuts_off",
    "log_is_shorter",
    "single_replica",
)
"""The codes of reasons against a restart, the worst first; a reason that cannot be helped comes last."""

MOST_NAMED = 1_000
"""The most partitions that a fact names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartFact(PublicMessage):
    """Something that a restart does, or waits for."""

    code: str  # which: a word for tools
    what: str  # it in a sentence
    count: Count = -1  # of how many partitions
    partitions: Names = field(default_factory=list)  # as TOPIC-NUMBER, sorted, a thousand at most


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRow(PublicMessage):
    """Whether one broker may be restarted now, or started if it is not running."""

    broker: Annotated[Id, Heading("Broker", 1)]  # which
    verdict: Annotated[Word, Heading("Verdict", 2)]  # `safe`, `unsafe` if there are `reasons`, else `unknown` if there are `doubts`
    running: bool = True  # it serves now
    hangs: bool = False  # it does not, and no controller has fenced it yet: its copy of the metadata log does not grow while others do
    reasons: list[RestartFact] = field(default_factory=list)  # list of `RestartFact`: why not, the worst first, as by `REASONS`
    costs: list[RestartFact] = field(default_factory=list)  # list of `RestartFact`: what happens, and is no reason, or is accepted
    behind: list[RestartFact] = field(default_factory=list)  # list of `RestartFact`: what its last start has not caught up with yet
    doubts: list[str] = field(default_factory=list)  # sentences: what is not known, so that it is not called safe

    @property
    def against(self) -> list[str]:
        """All that speaks against it, in sentences, the worst first."""
        return [*(each.what for each in self.reasons), *self.doubts]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPage(PublicMessage):
    """Whether brokers may be restarted, one at a time."""

    at_ms: int  # as of when
    version: str = ""  # of the segtail that made it
    order: list[int] = field(default_factory=list)  # of all brokers that may be restarted: after each, wait until it has caught up
    next_step: Sentence = ""  # what to do now
    rows: list[RestartRow]  # list of `RestartRow`
