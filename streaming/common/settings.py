"""Every option of segtail and its default, as one frozen value."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from streaming.common.option_types import (
    AUTO,
    Agents,
    BrokerConfig,
    Count,
    Directories,
    Directory,
    Duration,
    DurationOrAuto,
    Files,
    Flag,
    Folder,
    Form,
    JobUrl,
    Listen,
    OptionalDirectory,
    OptionalFile,
    OptionalListen,
    PageUrl,
    Pattern,
    PositiveCount,
    PositiveDuration,
    QueryCheckpoints,
    Ratio,
    Shards,
    Size,
    SizeOrNothing,
    SparkMaster,
    SparkOptions,
    TopicConfig,
    one_of,
    several_of,
    text,
)
from streaming.common.pace import LONGEST_SECONDS
from streaming.common.start_from import StartFrom
from streaming.common.units import Address


class Replicas(StrEnum):
    """Which replicas of a partition are exported."""

    LEADERS = "leaders"
    ALL = "all"


class Granularity(StrEnum):
    """The object that a series belongs to."""

    PARTITION = "partition"
    TOPIC = "topic"


class MetricGroup(StrEnum):
    """A group of metrics, as in docs/metrics.md; segtail's metrics about itself are in none."""

    THROUGHPUT = "throughput"
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    RETENTION = "retention"
    CONSUMERS = "consumers"


class LogLevel(StrEnum):
    """The least severe message that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The format of a log message."""

    TEXT = "text"
    JSON = "json"


class Settings(BaseModel):
    """The options of one process. Attributes have the names of the YAML file, except ``from``, which is reserved in Python."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    log_dirs: Directories = Field(
        default=(), description="Kafka's log dirs to watch; those of several brokers where all are readable here."
    )
    start_from: Annotated[StartFrom, text(StartFrom), one_of(StartFrom)] = Field(
        default=StartFrom.ACTIVE,
        validation_alias="from",
        description="Where a new checkpoint begins in logs that are already there: earliest (the first byte on disk), active (the active "
        "segment) or latest (the end). Logs that appear later are always read whole.",
    )
    checkpoint: Directory = Field(
        default=Path("checkpoints/segtail"),
        description="The directory of all data that the job keeps.",
    )
    listen: Listen = Field(
        default=Address("127.0.0.1", 9712), description="The address at which /metrics is served; port 0 takes any free port."
    )
    public_url: PageUrl = Field(
        default="",
        description="The address at which people reach the job's page, for commands and links on it and in alerts, such as "
        "https://segtail.example.org. Without it, it is the address of listen, or the host's name where listen takes connections on all "
        "addresses.",
    )
    replicas: Annotated[Replicas, text(Replicas), one_of(Replicas)] = Field(
        default=Replicas.LEADERS,
        description="The replicas of a partition that are exported: leaders (one replica, the leader where it is known) or all.",
    )
    trigger: DurationOrAuto = Field(
        default=None,
        description="auto runs a micro-batch right before each scrape, see docs/pace.md. A duration is the least time between two "
        "micro-batches; 0s starts one as soon as there is work.",
    )
    hanging_after: Duration = Field(
        default=timedelta(minutes=15),
        description="An open transaction that is silent for longer, and that no coordinator will end, is hanging.",
    )
    late_after: Duration = Field(
        default=timedelta(minutes=1),
        description="Transactions that are open for longer are listed one by one.",
    )
    late_limit: Count = Field(default=500, description="The largest number of late transactions that are listed.")
    groups_limit: Count = Field(
        default=10_000,
        description="The largest number of consumer groups that an agent follows, in the order in which it finds them; the others are "
        "counted.",
    )
    group_late_after: Duration = Field(
        default=timedelta(minutes=5),
        description="Partitions of consumer groups are listed one by one if the next record to read is older.",
    )
    group_late_limit: Count = Field(default=1000, description="The largest number of late partitions of consumer groups that are listed.")
    group_stopped_after: PositiveDuration = Field(
        default=timedelta(minutes=10),
        description="A consumer group has stopped in a partition if its committed offset stays where it is for longer, although there is a "
        "record to read.",
    )
    group_loss_within: PositiveDuration = Field(
        default=timedelta(hours=4),
        description="The alert GroupWillLoseData: records that a group in danger has not read are deleted within so long.",
    )
    group_held_after: PositiveDuration = Field(
        default=timedelta(minutes=15),
        description="The alert GroupHeldUp: records wait for longer behind an open transaction. 15 minutes are Kafka's longest default "
        "transaction timeout (transaction.max.timeout.ms).",
    )
    throwaway_groups: Pattern = Field(
        default=re.compile("", re.DOTALL),
        description="A regular expression; consumer groups whose whole name matches are made anew at each start, and nobody comes back to "
        "them: they are never a problem. Those of kafka-console-consumer and of Spring without a group are so in any case.",
    )
    spark_checkpoints: QueryCheckpoints = Field(
        default=(),
        description="Checkpoints of other Structured Streaming queries that read from this cluster: each query is shown as the consumer "
        "group spark:NAME. Any URI that the job's Spark reads (s3a, hdfs, abfss, file); a path without a scheme is one of this machine. "
        "The isolation is that of the query's kafka.isolation.level, if it is known. The job's own checkpoint is spark_checkpoint.",
    )
    stuck_after: PositiveDuration = Field(
        default=timedelta(minutes=20),
        description="An open transaction whose producer is silent for longer is stuck, unless it is hanging, overdue or waits for an "
        "outer transaction. Kafka's own count of late transactions begins at transaction.max.timeout.ms plus 5 minutes, which is 20 "
        "minutes by default.",
    )
    overdue_after: PositiveDuration = Field(
        default=timedelta(minutes=30),
        description="The alert RetentionOverdue: bytes that Kafka may delete are left for longer, and for longer than two of the broker's "
        "log.retention.check.interval.ms.",
    )
    ahead_limit: PositiveDuration = Field(
        default=timedelta(hours=1), description="The alert TimestampsInFuture: records are dated further ahead of the clock."
    )
    full_within: PositiveDuration = Field(
        default=timedelta(hours=6),
        description="The alert LogDirFillingUp: with what retention frees reckoned in, a log dir is full within so long.",
    )
    free_ratio: Ratio = Field(
        default=0.15,
        description="The alert LogDirFillingUp: less of a log dir's file system is free, and at the present rate it is full within a day; "
        "or less than a third of that is free.",
    )
    starting_after: PositiveDuration = Field(
        default=timedelta(minutes=15), description="The alert BrokerStarting: a broker has registered and serves nothing for longer."
    )
    scrub_overdue_after: PositiveDuration = Field(
        default=timedelta(days=30),
        description="The alert ObserverBlind: no pass of the scrub over a log dir has ended for longer. Only where the scrub is on.",
    )
    stale_after: PositiveDuration = Field(
        default=timedelta(minutes=5), description="After an agent is silent for longer, another replica is exported for its partitions."
    )
    export_granularity: Annotated[Granularity, text(Granularity), one_of(Granularity)] = Field(
        default=Granularity.PARTITION,
        validation_alias="export.granularity",
        description="The level of the exported series: partition, or topic. Series of late and hanging transactions are always by "
        "partition.",
    )
    export_group_granularity: Annotated[Granularity, text(Granularity), one_of(Granularity)] = Field(
        default=Granularity.TOPIC,
        validation_alias="export.group_granularity",
        description="The level of the series of consumer groups: topic, or partition for those of each partition too. With topic, "
        "partitions later than group_late_after are listed all the same.",
    )
    export_consumers: Pattern = Field(
        default=re.compile(".*", re.DOTALL),
        validation_alias="export.consumers",
        description="A regular expression; consumer groups whose whole name matches are exported.",
    )
    export_exclude_consumers: Pattern = Field(
        default=re.compile("", re.DOTALL),
        validation_alias="export.exclude_consumers",
        description="A regular expression; consumer groups whose whole name matches are not.",
    )
    export_topics: Pattern = Field(
        default=re.compile(".*", re.DOTALL),
        validation_alias="export.topics",
        description="A regular expression; topics whose whole name matches are exported.",
    )
    export_exclude: Pattern = Field(
        default=re.compile("", re.DOTALL),
        validation_alias="export.exclude",
        description="A regular expression; topics whose whole name matches are not.",
    )
    export_append_delays: Flag = Field(
        default=True,
        validation_alias="export.append_delays",
        description="Export how late records arrive, by topic: ten series of a histogram, and a counter of what is dated ahead.",
    )
    export_groups: Annotated[
        tuple[MetricGroup, ...],
        several_of(MetricGroup),
        Form("some of " + ", ".join(MetricGroup), lambda groups: [str(group) for group in groups]),
    ] = Field(
        default=tuple(MetricGroup),
        validation_alias="export.groups",
        description="The metrics to export, by their sections in docs/metrics.md. Metrics of the observer itself are always exported.",
    )
    series_limit: PositiveCount = Field(
        default=1_000_000,
        description="Above this number of series, sums by topic replace partitions, and then the largest metrics are omitted; late and "
        "hanging transactions and log dirs are omitted last.",
    )
    label_limit: Size = Field(
        default=128 << 20,
        description="Above this number of bytes of labels on a page, whole metrics are omitted: those with the most bytes first, those "
        "that wake people up last.",
    )
    producers_limit: PositiveCount = Field(
        default=10_000, description="The largest number of producers to keep for each log; a log with more has no count of producers."
    )
    assume_replicated: Flag = Field(
        default=False,
        description="Without readable cluster metadata, take every log as replicated up to its end instead of its checkpoint.",
    )
    server_properties: Files = Field(
        default=(),
        description="The server.properties of brokers, each matched by its node.id. They give the limits of logs that neither a topic nor "
        "the cluster's metadata sets. Without them Kafka's defaults are assumed.",
    )
    broker_config: BrokerConfig = Field(
        default_factory=dict,
        description="The same settings for all brokers without a server.properties here, such as those that Strimzi runs: "
        "log.retention.hours: 72.",
    )
    topic_config: TopicConfig = Field(
        default_factory=dict,
        description="Settings of topics, by regular expressions that match whole names; the first match counts. They are used only where "
        "no cluster metadata can be read, as in clusters with ZooKeeper.",
    )
    state_shards: Shards = Field(
        default=AUTO,
        description="Shards of the job's state: auto chooses 4, 16 or 64 by the number of logs, 1,000 to 2,500 a shard with room for as "
        "many again. Fixed when a checkpoint is made; an existing checkpoint keeps its own.",
    )
    max_bytes_per_batch: Size = Field(default=2 << 30, description="The largest number of log bytes that one micro-batch counts.")
    master: SparkMaster = Field(default="local[2]", description="Where Spark runs.")
    spark: SparkOptions = Field(default_factory=dict, description="More options for Spark, by their own names.")
    class_archives: OptionalDirectory = Field(
        default=None,
        description="Where `segtail warm-up` writes archives of the classes that Spark's JVM loads, and jobs look for one: with it a job "
        "starts with less CPU. Without it, segtail in the user's cache ($XDG_CACHE_HOME, ~/.cache).",
    )
    log_level: Annotated[LogLevel, text(LogLevel), one_of(LogLevel)] = Field(
        default=LogLevel.INFO, description="The least severe message logged; read again from the file of --config at SIGHUP."
    )
    log_format: Annotated[LogFormat, text(LogFormat), one_of(LogFormat)] = Field(
        default=LogFormat.TEXT, description="Log messages as key=value text, or json for one object a line."
    )
    job: JobUrl = Field(
        default="",
        description="The running job that commands ask, as --job names it, where neither --job nor --log-dirs is given; without it they "
        "read log dirs. A job and an agent do not use it.",
    )
    agents: Agents = Field(
        default=(),
        description="Agents on other hosts, instead of log_dirs: https://HOST:PORT, http://HOST:PORT (loopback, or where another layer "
        "encrypts), or dns:///NAME:PORT for all addresses behind a name, with TLS where agent_ca is given.",
    )
    agent_ca: OptionalFile = Field(
        default=None, description="The CA certificates (PEM) of the agents' certificates; the machine's own bundle for public CAs."
    )
    agent_cert: OptionalFile = Field(default=None, description="The certificate (PEM) that the job shows to agents which ask for one.")
    agent_key: OptionalFile = Field(default=None, description="The private key (PEM) of agent_cert.")
    agent_token_file: OptionalFile = Field(
        default=None,
        description="A file with the token that the job sends to agents, the first if it has several; executors read it at the same path.",
    )
    spark_checkpoint: Folder = Field(
        default="",
        description="Where Spark keeps offsets and state, on any Hadoop file system: needed where executors run on other machines. "
        "Without it they are in the checkpoint.",
    )
    web_config: OptionalFile = Field(
        default=None,
        description="TLS and passwords for everything served over HTTP: a web config file in the format of Prometheus' own exporters.",
    )
    tls_cert: OptionalFile = Field(default=None, description="The certificate (PEM) of an agent, with the chain to its CA.")
    tls_key: OptionalFile = Field(default=None, description="The private key (PEM) of tls_cert.")
    tls_client_ca: OptionalFile = Field(
        default=None, description="An agent accepts only jobs whose certificate is signed by one of these CAs (PEM)."
    )
    token_file: OptionalFile = Field(
        default=None,
        description="An agent accepts only jobs that send one of the tokens in this file: one per line, behind a name and a space if it is "
        "to have a name; jobs of one name can then not touch those of another.",
    )
    metrics_listen: OptionalListen = Field(
        default=None,
        description="The address at which an agent serves its own /metrics, /-/healthy and /-/ready; without it they are at "
        "listen, for whoever has a token and a certificate as jobs do.",
    )
    read_rate: Size = Field(default=256 << 20, description="The largest number of bytes a second that an agent reads from a backlog.")
    ladder_rate: SizeOrNothing = Field(
        default=64 << 20,
        description="Bytes a second of closed segments in which an agent counts records, once, so that it knows what lies between two "
        "offsets of a log; 0 counts nothing, and what consumer groups lack is known in offsets alone.",
    )
    scrub_rate: SizeOrNothing = Field(
        default=0,
        description="Bytes a second at which an agent checks the CRCs of closed segments in the background, all of its log dirs together; "
        "0, the default, leaves the scrub off.",
    )
    scrub_every: PositiveDuration = Field(
        default=timedelta(days=7),
        description="Time from the start of one pass of the scrub to the start of the next, which waits until the one before has ended.",
    )
    redact_ids: Flag = Field(
        default=False,
        description="Agents send a hash instead of each transactional id, and of each consumer group's name, clients and hosts.",
    )

    @property
    def longest_pause(self) -> timedelta:
        """The longest normal time between two micro-batches."""
        return timedelta(seconds=LONGEST_SECONDS) if self.trigger is None else self.trigger


@dataclass(frozen=True, slots=True)
class Option:
    """One option as it is shown to users.

    Args:
        name: its name in the YAML file.
        attribute: its name in `Settings`.
        description: one or two sentences.
        form: what it accepts, and how a value is shown.
    """

    name: str
    attribute: str
    description: str
    form: Form


def _declared() -> Iterator[Option]:
    for attribute, field in Settings.model_fields.items():
        (form,) = (extra for extra in field.metadata if isinstance(extra, Form))
        yield Option(str(field.validation_alias or attribute), attribute, field.description or "", form)


OPTIONS = {option.name: option for option in _declared()}
"""Every option by its name, in the order of the YAML file."""
