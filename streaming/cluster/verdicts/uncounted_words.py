"""Why the records of a log are not counted, as far as a job knows it: decided once, in words, for every row that has no counts."""

from collections.abc import Sequence

from streaming.broker.protocol.group_messages import is_counted
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.view.table import Snapshot
from streaming.common.formatting import format_name, format_word
from streaming.common.log_key import LogKey


def why_uncounted(circumstances: Circumstances, snapshot: Snapshot, items: Sequence[int]) -> list[str]:
    """The reasons of some observed logs, clauses without a period, in their order.

    Args:
        items: indexes in `streaming.cluster.view.exported.Observed`.
    """
    unreadable = {
        LogKey(each.broker, each.topic, each.partition, each.topic_id): f"{format_word(each.path)}: {each.error}"
        for agent in circumstances.up
        for each in agent.unreadable_logs
    }
    down = {each.name for each in circumstances.agents} - {each.name for each in circumstances.up}
    return [_why(circumstances, snapshot, item, unreadable, down) for item in items]


def _why(circumstances: Circumstances, snapshot: Snapshot, item: int, unreadable: dict[LogKey, str], down: set[str]) -> str:
    observed = circumstances.view.observed
    columns, topic = observed.columns, observed.names[item]
    slot, directory, agent = (int(columns[name][item]) for name in ("slot", "log_dir", "agent"))
    key = LogKey(int(columns["broker"][item]), topic, int(columns["partition"][item]), snapshot.topic_ids[slot])
    if not is_counted(topic):
        return "agents do not count the metadata log, which grows all the time: `segtail count --log-dirs` does"
    if not circumstances.live:
        return "a reading of log dirs does not count records: `segtail count --log-dirs` does"
    if key in unreadable:
        return unreadable[key]
    if directory in snapshot.unread_dirs:
        return f"log dir {format_word(snapshot.log_dirs[directory][1])} cannot be read now"
    if observed.unreadable[item]:
        return "it cannot be read now"
    name = snapshot.agents[agent]
    if name in down:
        return f"its agent {format_name(name)} does not answer"
    if name in snapshot.uncounted.idle:
        return f"its agent {format_name(name)} counts no records: see its option ladder_rate"
    return snapshot.uncounted.errors.get(key) or f"its agent {format_name(name)} has not counted all of it yet"
