"""Codec, batch size and linger by topic, as ``segtail advise --json`` prints it."""

from dataclasses import dataclass, field
from typing import Annotated

from streaming.broker.protocol.json_message import Bytes, Count, Flag, Heading, Name, PublicMessage, Ratio, Sentence, Word

ADVISED, NOTHING, UNKNOWN = "advised", "nothing", "unknown"
"""The words of ``verdict``."""

SAMPLE_BYTES = 4 << 20
"""So much is read of each topic, unless something else is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedSetting(PublicMessage):
    """What a producer would have written of the sample with one setting."""

    codec: str  # `compression.type`, of the topic where `compression` is one
    batch_size: Bytes = -1  # `batch.size`; `null` for what it is now
    linger_ms: Count = -1  # `linger.ms`; `null` for what it is now, or where the times of sending are not known
    saving_percent: float  # of the bytes on disk; below zero if it needs more
    error_percent: Ratio = -1.0  # 95 of 100 such samples are that near, or nearer; `null` for fewer than two windows
    ratio: float  # bytes of the records before compression against those of the batches
    batch_records: float  # records a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRow(PublicMessage):
    """What is advised for one topic, by a sample of its last segments."""

    topic: Annotated[Name, Heading("Topic", 1, least=16)]  # its name
    verdict: Annotated[Word, Heading("Verdict", 2)]  # `advised`, `nothing` to gain, or `unknown`
    why: Sentence = ""  # it is not advised
    codec: Annotated[Word, Heading("Codec now", 5)] = ""  # of most bytes
    batch_records: Annotated[Ratio, Heading("Records a batch", 7)] = -1.0  # now, as all that follows up to `ratio`
    batch_bytes: Annotated[Bytes, Heading("Mean batch", 8)] = -1  # on disk
    ratio: Annotated[Ratio, Heading("Ratio", 9)] = -1.0  # bytes of the records before compression against those of the batches
    advised: list[AdvisedSetting] = field(default_factory=list)  # the `AdvisedSetting`, if there is one
    setting: Annotated[Word, Heading("Advised", 3, least=8)] = ""  # the same in words
    saving: Annotated[Word, Heading("Saves", 4)] = ""  # likewise
    saved_day: Annotated[Bytes, Heading("Saves a day", 6)] = -1  # bytes on the disks of all replicas; `null` where growth is not known
    segment_bytes: Annotated[Bytes, Heading("Last segments", 11)] = -1  # of the partitions, each by one replica
    sampled_bytes: Annotated[Bytes, Heading("Read", 10)] = -1  # of these
    compression: Word = ""  # the `compression.type` of the topic or its brokers, if they compress again
    linger_known: Flag = True  # the records have the times of sending
    notes: list[str] = field(default_factory=list)  # sentences: what the prediction depends on, and what was left out
    settings: list[AdvisedSetting] = field(default_factory=list)  # list of `AdvisedSetting`: all that were tried, where topics were named


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePage(PublicMessage):
    """Topics, those with most bytes first."""

    at_ms: int  # as of when
    version: str = ""  # of segtail
    total: int  # how many topics are there
    rows: list[AdviceRow]  # list of `AdviceRow`
    doubts: list[str] = field(default_factory=list)  # what could not be read, in sentences
