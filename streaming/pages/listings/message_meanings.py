"""What each field of a message for people means: docs/api.md and the JSON Schema are made of it. Rows of lists say it themselves."""

from collections.abc import Mapping, Sequence

from streaming.broker.protocol.away_json import AwayBroker
from streaming.broker.protocol.broker_json import BrokerPage
from streaming.broker.protocol.cost_json import Cost, Share
from streaming.broker.protocol.count_json import CountPage
from streaming.broker.protocol.disk_json import DiskAnswer, KindUse, LeftoverFiles
from streaming.broker.protocol.doctor_json import DiagnosisRow, DoctorPage
from streaming.broker.protocol.event_json import EventPage
from streaming.broker.protocol.group_json import (
    BatchCheck,
    GroupDetail,
    GroupFinding,
    GroupPage,
    GroupRebalance,
    HoldingTransaction,
    MovedOffset,
    PendingOffset,
    ReadMoments,
    RebalancedMember,
)
from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import PartitionPage, RetentionPage, TransactionPage
from streaming.broker.protocol.partition_json import Minute, PartitionDetail, ReplicaRow, SegmentRow
from streaming.broker.protocol.problem_json import Consequence, ProblemPage
from streaming.broker.protocol.status_json import AgentState, JobStart, Status
from streaming.broker.protocol.topic_json import TopicDetail, TopicPage, TopicReader

Meanings = Sequence[tuple[Sequence[str], str]]
"""Some fields, and what they are."""

_ANSWER: Meanings = (
    (("at_ms",), "as of when"),
    (("version",), "of segtail"),
    (("doubts",), "what cannot be told, in sentences: something may be wrong there that is nowhere else"),
)
_PAGE: Meanings = (
    *_ANSWER,
    (("total", "matched", "offset"), "all rows, those that were asked for, and the place of the first one here among these"),
    (("sort", "order"), "how they are sorted"),
)
_AWAY: Meanings = ((("away",), "list of `AwayBroker`: what is shown of these is as of when they last wrote"),)

MEANINGS: Mapping[type[PublicMessage], Meanings] = {
    Status: (
        (("at_ms",), "as in `ProblemPage`"),
        *_ANSWER[1:],
        (("ready",), "everything that was on the disks at the start is in the numbers"),
        (("start",), "a `JobStart` until then, `null` afterwards"),
        (("verdict",), "a sentence: what is wrong, all in all; until the job is ready, how far its start is"),
        (("freshness",), "a sentence: up to when what is known is whole"),
        (("not_current",), "a sentence: why nothing of all this is current, `null` if something is"),
        (("severity",), "of the most severe incident, `null` for none"),
        (("critical", "warning", "info"), "numbers of incidents, as in `ProblemPage`"),
        (("newest_ms",), "everything up to then is in the numbers, of all agents that are up"),
        (("agents",), "list of `AgentState`, those that are down first"),
        (("omitted_agents",), "so many are left out"),
        (("partitions", "logs"), "partitions that are shown; replicas that are watched"),
        (("started_ms",), "when the job began"),
        (("cluster_id",), "of the Kafka cluster"),
        (("url",), "where people reach the page, `null` if that is not known"),
        (("redacted",), "names of groups and transactional ids are not the ones that Kafka knows"),
    ),
    JobStart: (
        (
            ("step",),
            "`agents`: none has answered; `spark`: Spark starts; `reading`: agents read their disks; `counting`: that becomes numbers",
        ),
        (("what",), "a sentence: the step, and how far it is"),
        (("done_bytes", "all_bytes"), "bytes of logs in this step that are done, and that there are"),
        (("left_ms",), "for so long it goes on, at the rate so far"),
    ),
    AgentState: (
        (("name", "up", "brokers"), "whether it answers, and the brokers whose log dirs it watches"),
        (
            ("behind_bytes", "behind_ms"),
            "what it has published and the numbers do not hold yet, and for how long the oldest of it has waited",
        ),
        (("problems",), "words for what keeps it away, or needs somebody's care"),
        (("explanation",), "a sentence about the first of them"),
    ),
    ProblemPage: (
        (("at_ms",), "as of when: groups are judged in rounds, so their last round if that is older than the rest"),
        *_PAGE[1:-1],
        (("rows",), "list of `Problem`, a root before its consequences: by the severity of the incident, then by what is lost first"),
        (("critical", "warning", "info"), "numbers of all incidents, each by the worst of it"),
    ),
    EventPage: (
        *_PAGE[:-1],
        (("rows",), "list of `ClusterEvent`, the newest first"),
        (("since_ms",), "from when on changes are known: since the job had read its disks, or the oldest that is kept"),
    ),
    Consequence: (
        (("text",), "a clause, such as `group ledger in payments-2: held up, loses records from 2026-11-22T13:06:54Z on (in 6m)`"),
        (("severity",), "the highest of the problems that it sums up"),
        (("broker", "topic", "partition", "group"), "what it is about"),
        (("deadline_ms",), "as in `Problem`"),
        (("problems",), "the `id` of each of these problems"),
    ),
    PartitionPage: (*_PAGE, *_AWAY, (("rows",), "list of `PartitionRow`")),
    TransactionPage: (
        *_PAGE,
        *_AWAY,
        (("rows",), "list of `TransactionRow`: what is open for longer than `late_after`"),
        (("omitted",), "so many are not listed, because of `late_limit`"),
        (
            ("late_after_ms", "young"),
            "`late_after`, `null` if every open transaction is listed; how many are open that are not older than it",
        ),
        (("aborting",), "clients that abort most of their transactions, in sentences; only a job has watched them"),
    ),
    RetentionPage: (*_PAGE, *_AWAY, (("rows",), "list of `RetentionRow`")),
    CountPage: (
        *_ANSWER,
        (("by",), "what a row is: `topic` or `partition`"),
        (("total", "matched", "offset"), "as in `PartitionPage`"),
        *_AWAY,
        (("rows",), "list of `CountRow`, by their names"),
    ),
    GroupPage: (
        *_PAGE,
        *_AWAY,
        (("rows",), "list of `GroupSummary`"),
        (("omitted",), "so many are not followed, because of `groups_limit`"),
        (("unread",), "so many partitions of `__consumer_offsets` are not read to their high watermark: groups may be missing"),
        (("coordinators",), "so many logs of coordinators are read from a current replica: without any, no group is known"),
        (("read",), "when log dirs were read, a `ReadMoments`; `null` from a job, and with `--at`"),
        (("data_age_ms",), "what a job knows of groups is older than `at_ms` by so much, of the group of which it is the oldest"),
    ),
    ReadMoments: (
        (
            ("commits_from_ms", "commits_until_ms"),
            "between these, committed offsets were read; or when the checkpoint was written by which they count",
        ),
        (("ends_from_ms", "ends_until_ms"), "then, the ends of the logs that they are held against"),
    ),
    GroupDetail: (
        (("at_ms",), "as of when"),
        (("summary",), "a `GroupSummary`"),
        (("partitions", "omitted"), "list of `GroupPartition`, the worst first, 10,000 at most, and how many are left out"),
        (("findings",), "list of `GroupFinding`, the worst first; every partition that is there has at least one"),
        (("unread", "data_age_ms"), "as in `GroupPage`; the age is of this group"),
        (("clients", "hosts"), "of its first members"),
        (("rebalances",), "list of `GroupRebalance`, the newest first, 20 at most: those that are still on disk"),
        (("notes",), "what is known of a streaming query besides, in sentences: see [groups.md](groups.md#streaming-queries)"),
    ),
    GroupRebalance: (
        (("at_ms",), "when, by its coordinator"),
        (
            ("kind",),
            "`members`, `metadata` where only partitions or topics came or went, or `rejoined`: a static member came back, no rebalance",
        ),
        (("generation",), "to which it came; of consumer, share and streams groups the group epoch"),
        (("generations", "unfinished"), "by how much that was raised, and how many of those had no assignment"),
        (("members",), "how many there were then"),
        (("joined_members", "left_members"), "how many joined and left; `null` where that is not on disk"),
        (("joined", "left"), "lists of `RebalancedMember`, four at most"),
    ),
    RebalancedMember: ((("client", "host"), "its client id and its host; hashes where `redact_ids` is set"),),
    GroupFinding: (
        (("verdict", "severity", "since_ms"), "as in `GroupPartition`"),
        (("topic", "partition"), "which; `null` for what is said of the group"),
        (("lag",), "what is left there: records, or offsets where those are not known"),
        (("text",), "a sentence without a period"),
        (("command", "no_command"), "what mends it, to be copied into a shell, or why there is none"),
        (("because",), "the verdict of the finding before it, about the same partition, from which it follows; `null` if none is known"),
    ),
    HoldingTransaction: (
        (("producer_id", "producer_epoch", "first_offset", "start_ms", "last_append_ms"), "as in `TransactionRow`"),
        (("transactional_id", "state", "verdict"), "likewise; the state is that of its coordinator"),
        (("deadline_ms",), "when its timeout has passed, and its coordinator ends it"),
        (("stuck",), "it has been silent for longer than `stuck_after`"),
    ),
    PendingOffset: (
        (("producer_id", "offset", "coordinator"), "what was committed by whom, in which partition of `__consumer_offsets`"),
        (("since_ms",), "since when commits of the transaction wait, as far as that is known"),
        (
            ("start_ms", "first_offset", "transactional_id", "verdict", "deadline_ms"),
            "of the transaction, as in `HoldingTransaction`; `start_ms` is `null` if it is not known, as while it ends",
        ),
    ),
    MovedOffset: (
        (
            ("kind",),
            "`admin`: by hand; `reset`: back from beyond the end of the log; `consumer`: by a member; `external`: by a program beside it",
        ),
        (("from_offset", "from_ms"), "what was committed before, and when, by the coordinator's clock"),
        (("to_offset", "at_ms"), "what was committed then, and when"),
        (("records",), "between both, as far as they are in the log; `null` where they are not counted"),
        (("offsets",), "of those that are not counted, else 0"),
    ),
    BatchCheck: (
        (("sound", "error"), "whether it can be read, and what is wrong with it"),
        (("base_offset", "last_offset", "size", "codec", "records", "producer_id"), "as its header has them"),
        (("segment", "position", "file"), "where it is: the base offset of its segment, the position in it, its path"),
    ),
    PartitionDetail: (
        (("at_ms",), "as of when"),
        (("row", "retention"), "a `PartitionRow`, a `RetentionRow`"),
        (("records_why",), "why its records are not counted; `null` if they are"),
        (
            ("transactions", "problems"),
            "lists of `TransactionRow` and `Problem`; problems of the whole topic, of groups that read it, and of its broker about logs "
            "like this one are among them",
        ),
        (("late_after_ms", "young_transactions"), "as `late_after_ms` and `young` in `TransactionPage`, of this partition"),
        (("segments", "omitted"), "list of `SegmentRow`, 1,000 at most, and how many are left out in the middle"),
        (("minutes",), "the last hour, list of `Minute`, the oldest first"),
        (("replicas",), "list of `ReplicaRow`, the one that is shown first"),
    ),
    SegmentRow: (
        (("base_offset", "size_bytes", "max_timestamp_ms"), "of the segment"),
        (("active",), "it takes appends"),
        (("deletable",), "it is beyond a limit, and nothing before it stays"),
        (
            ("deletion_ms", "deletion_by_size"),
            "when the limit that lets it go first does so, by the forecast of `next_deletion_ms` in `RetentionRow`, and whether that is "
            "`retention.bytes`; what is before it has to go first; `null` for never or not known",
        ),
    ),
    Minute: (
        (("at_ms",), "the minute of the clock that begins then"),
        (("bytes_rate", "records_rate"), "appended until this minute, since the one before"),
        (("log_end_offset", "last_stable_offset"), "as they were"),
    ),
    ReplicaRow: (
        (("broker", "role", "in_sync"), "`leader`, `follower` or `unknown`; `yes`, `no` or `unknown`"),
        (("shown",), "the rest of the answer is about this one"),
        (("log_dir", "size_bytes", "log_start_offset", "log_end_offset", "last_append_ms"), "as it is there"),
    ),
    Cost: (
        (("at_ms",), "when the last scrape was answered, `null` if none was"),
        (("series", "bytes", "duration_ms"), "of that page, before compression, and how long it took to make and to compress"),
        (("series_dropped",), "left out because of `series_limit` or `label_limit`"),
        (("metrics", "topics"), "lists of `Share`, the largest first; topics are counted as the table has them now, 100 at most"),
        (("omitted_topics",), "so many are left out"),
    ),
    Share: ((("name", "series", "bytes"), "the part of one metric, or of one topic, in the page"),),
    DiskAnswer: (
        *_ANSWER,
        (
            ("by", "total", "matched", "offset"),
            "what a row is; how many there are, and are asked for; how many come before the first one here",
        ),
        (("log_dirs", "rows"), "`LogDirUse` of each log dir, with all that is in it; `DiskRow`, the largest first"),
        (("leftovers",), "`LeftoverFiles`, only from `segtail disk`"),
        (("what_if", "in_force"), "what was tried, and the log dirs without it; only from `segtail disk`"),
        *_AWAY,
    ),
    TopicPage: (*_PAGE, *_AWAY, (("rows",), "list of `TopicRow`")),
    BrokerPage: (*_PAGE, *_AWAY, (("rows",), "list of `BrokerRow`")),
    TopicDetail: (
        (("at_ms",), "as of when"),
        (("row",), "a `TopicRow`"),
        (("problems",), "list of `Problem`: those that name it, and their roots, the most severe first"),
        (("readers", "more_readers"), "list of `TopicReader`, the worst first, `null` where no groups are read; how many are left out"),
    ),
    TopicReader: (
        (("group", "partitions"), "a consumer group with committed offsets there, and in how many partitions"),
        (
            ("lag_records", "lag_offsets"),
            "what it has left there, in records by its isolation and in offsets; `null` where a part of it is not known",
        ),
        (("verdict", "severity", "since_ms"), "the worst about these partitions, as in `GroupPartition`"),
    ),
    AwayBroker: (
        (("broker",), "whose log dirs nobody holds: it is stopped, or they are a copy"),
        (("last_ms",), "its last sign of life: its files are as of then"),
        (("ended_ms",), "by when its process had ended, `null` if it was not seen to end"),
    ),
    KindUse: ((("kind", "taken", "apparent"), "the kind of files, what they take on the disk, their length"),),
    LeftoverFiles: ((("path", "kind", "taken", "since_ms"), "where, what it is, bytes, since when nothing of it has changed"),),
    DoctorPage: (
        *_ANSWER,
        (("faults", "warnings", "unknown"), "numbers of rows with these states"),
        (("rows",), "list of `DiagnosisRow`, in the order of the checks"),
    ),
    DiagnosisRow: (
        (("check",), "what was looked at"),
        (("state",), "`fine`, `warning`, `fault`, `unknown` or `not applicable`"),
        (("what",), "a sentence"),
        (("command",), "what mends it, `null` if no command does"),
    ),
}
"""The fields of each message, in the order in which documents have them."""

INTRODUCTIONS: Mapping[str, str] = {
    "DoctorPage": "What `segtail doctor --json` prints ([doctor.md](doctor.md)). No path has it.",
    "Problem": (
        "Each kind goes with one alert of `conf/alerts`: the sentence begins with the alert's summary, and the severity is "
        "the same. A problem is\nthere at once, where an alert waits until it has lasted. The alerts without a kind report "
        "what one moment does not show\n(`streaming/cluster/verdicts/kinds.py` names them, with the reasons).\n\n"
        "Problems of one cause are one incident: a root, and what follows from it, which names the root in `because`. A "
        "consequence\nhas no `command`, unless it needs one besides that of its root. `roots=true` leaves the roots alone: a row for each "
        "incident."
    ),
    "PartitionRow": (
        "The replica that is shown for the partition: the leader's, if it is watched. With `replicas: all` each replica has a row."
    ),
    "DiskAnswer": (
        "What fills log dirs and when they are full: [disk.md](disk.md) says how that is reckoned. `segtail disk --json` prints the same."
    ),
    "CountRow": (
        "A topic, or a partition by the replica that is shown for it. `segtail count` counts up to the high watermark; a "
        "job has counted whole logs, so some fields are `null`."
    ),
}
"""What there is to say of a message as a whole, by its name."""
