"""``segtail retention``: what is kept and for how long, what Kafka is about to delete, and what holds it back."""

import dataclasses
import json
import time
from collections.abc import Iterable, Mapping, Sequence

import click

from streaming.agent.static_configs import static_configs, topic_patterns
from streaming.agent.topic_configs import TopicConfigs
from streaming.cli.options import with_settings
from streaming.cli.retention_report import DirUse, report, sorted_rows
from streaming.cli.retention_rows import Row, rows
from streaming.cli.times import Moment
from streaming.disk.contents import look_into
from streaming.disk.logdirs import LogDir, open_log_dirs
from streaming.errors import UsageError
from streaming.kafka.names import METADATA_TOPIC
from streaming.rest.logs import AtRest, look_at
from streaming.rules.limits import Configs
from streaming.settings import Settings

SORTS = ("overdue", "lag", "reclaimable", "size")
UNREADABLE = 1


@click.command("retention")
@with_settings("log_dirs", "server_properties")
@click.option("--topic", metavar="T", help="The partitions of this topic alone.")
@click.option("--sort", "by", type=click.Choice(SORTS), default="overdue", show_default=True, help="What comes first has most of it.")
@click.option("--at", type=Moment(), metavar="TIME", help=f"Judge as if it were then: {Moment.accepts}.  [default: now]")
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True, help="Form of the output.")
def command(settings: Settings, topic: str | None, by: str, at: int | None, form: str) -> int:
    """Show for every partition what is kept and for how long, what Kafka is about to delete, and what holds it back.

    Read from the log dirs alone, once; brokers may run meanwhile, or not. One replica speaks for each partition: the leader where it is
    known and here. A limit with a question mark is Kafka's default, assumed because server.properties was not given.

    Exit status: 0 done, 1 something could not be read, metadata logs included, 2 not possible as asked.
    """
    now_ms = time.time_ns() // 1_000_000 if at is None else at
    log_dirs = open_log_dirs(settings.log_dirs)
    log_dirs.log_changes()
    static = static_configs(settings.server_properties, settings.broker_config, log_dirs.brokers)
    configs = _configs(settings, static, log_dirs.brokers)
    found = look_at(log_dirs.available, topic, static)
    if topic is not None and not (found.logs or found.unreadable or log_dirs.unavailable):
        raise UsageError(f"no partition of {topic} lies in {', '.join(str(log_dir.path) for log_dir in log_dirs)}")
    for broker, of_broker in configs.items():
        of_broker.refresh(found.metadata.images[broker])
    missed = found.unreadable + found.metadata.unreadable + len(log_dirs.unavailable)
    ordered = sorted_rows(rows(found.logs, configs, now_ms), by)
    if form == "json":
        click.echo(_json(ordered))
    else:
        uses, unreadable = _uses(log_dirs.available, found, whole=topic is None)
        missed += unreadable
        for line in report(ordered, uses, now_ms):
            click.echo(line)
    return UNREADABLE if missed else 0


def _configs(settings: Settings, static: Mapping[int, Configs], brokers: Iterable[int]) -> dict[int, TopicConfigs]:
    patterns = topic_patterns(settings.topic_config)
    return {broker: TopicConfigs(broker, static.get(broker), patterns) for broker in sorted(brokers)}


def _json(ordered: Sequence[Row]) -> str:
    """A row a line, inside one array."""
    return "[" + ",\n ".join(json.dumps(dataclasses.asdict(row)) for row in ordered) + "]"


def _uses(log_dirs: Sequence[LogDir], found: AtRest, *, whole: bool) -> tuple[list[DirUse], int]:
    """What takes the space of each log dir, and how many of them could not be looked into; nothing where only a part was looked at."""
    uses: list[DirUse] = []
    unreadable = 0
    for log_dir in log_dirs if whole else ():
        held = [
            at.inventory for at in (*found.logs, *found.others) if at.partition.log_dir == log_dir and at.partition.topic != METADATA_TOPIC
        ]
        try:
            contents = look_into(log_dir)
        except OSError:  # told when its partitions were listed
            unreadable += 1
            continue
        uses.append(DirUse(contents, sum(seen.size for seen in held), sum(seen.deleted_bytes for seen in held)))
    return uses, unreadable
