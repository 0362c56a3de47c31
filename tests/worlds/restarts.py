"""Clusters of three brokers whose partitions are told in a line each: what a check before a restart looks at."""

from typing import Any

from streaming.broker.protocol.cluster_messages import PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.verdicts.restart_check import RestartCheck
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.table import Table
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.limits import KAFKA_3_7
from tests.view.reported import Facts
from tests.view.rows import Row, log, new_table
from tests.worlds.hosts import broker, log_dir
from tests.worlds.problems import MINUTE, NOW_MS, agent, around

BROKERS = (1, 2, 3)
NEW = KAFKA_3_7


def replicas(
    topic: str,
    isr: tuple[int, ...],
    *,
    of: tuple[int, ...] = BROKERS,
    leader: int = 1,
    least: int = 1,
    eligible: tuple[int, ...] = (),
    ends: dict[int, int] | None = None,
    seen_ms: dict[int, int] | None = None,
    on: tuple[int, ...] | None = None,
    version: int = NEW,
) -> list[Row]:
    """The logs of a partition. ``ends``: of those that are not at 100; ``seen_ms``: when each last grew, else just now."""
    configs = f'{{"static":{{}},"topic":{{"min.insync.replicas":"{least}"}}}}'
    facts = Facts(replicas=of, isr=isr, eligible=eligible, leader_metadata_version=version, configs=configs).encode()
    return [
        log(
            topic,
            0,
            topic_id=topic,
            broker=each,
            agent=f"a{each}",
            leader=leader,
            leader_epoch=5,
            log_end_offset=(ends or {}).get(each, 100),
            last_append_ms=(seen_ms or {}).get(each, NOW_MS),
            active_max_timestamp_ms=-1,
            facts=facts,
        )
        for each in (of if on is None else on)
    ]


def registered(down: tuple[int, ...] = (), ids: tuple[int, ...] = BROKERS) -> list[Registered]:
    return [Registered(each, each in down, 7, Phase.DOWN if each in down else Phase.RUNNING, NOW_MS - MINUTE) for each in ids]


def status(number: int, counts: str = "", down: tuple[int, ...] = (), **more: Any) -> BrokerStatus:
    return broker(number, **{"appended_ms": NOW_MS - 500, "registered": registered(down), "counts": counts, **more})


def cluster(*rows: list[Row], down: tuple[int, ...] = (), away: tuple[int, ...] = (), **more: Any) -> tuple[Table, list[AgentStatus]]:
    """The table and the agents of a cluster with these partitions. ``down``: brokers that are fenced; ``away``: those without an agent."""
    flat = [row for each in rows for row in each]
    topics = [TopicCounts(topic=name, partitions=1) for name in sorted({row["topic"] for row in flat})]
    counts = PartitionCounts(topics, [], reassignments=more.get("moving", [])).pack()
    dirs = more.get("log_dirs", {each: (log_dir(broker=each, checkpoint_ms=NOW_MS),) for each in BROKERS})
    agents = [
        agent(
            status(each, down=down, **{"counts": counts, **more.get("of_broker", {})}),
            name=f"a{each}",
            log_dirs=dirs.get(each, ()),
            cluster_id="c",
        )
        for each in BROKERS
        if each not in away
    ]
    return new_table(*flat), agents


def check(*rows: list[Row], **more: Any) -> RestartCheck:
    """Of a cluster as by `cluster`; what else is given is of its circumstances."""
    own = {name: more.pop(name) for name in ("down", "away", "moving", "log_dirs", "of_broker") if name in more}
    table, agents = cluster(*rows, **own)
    of = around(*agents, table=table, **more)
    return RestartCheck(circumstances=of, limits_of=table.limiter.now())
