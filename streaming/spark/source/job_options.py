"""The options of the data source of segtail's own job, parsed once, and its schema. No secret is an option: they are visible in plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from streaming.common.start_from import StartFrom
from streaming.common.targets import FORM, Target
from streaming.errors import UsageError
from streaming.spark.client.address_lookup import ClientFiles, addresses

FILES = ("agent_ca", "agent_cert", "agent_key", "agent_token_file")
KNOWN = (
    *("agents", "address_file", "consumer", "start_from", "shards", "max_bytes", "wait_ms", "cluster_id"),
    *("run", "checks", "counted", "schedule"),
    *FILES,
)

SCHEMA = StructType([StructField("shard", IntegerType()), StructField("rows", BinaryType())])
"""That of `streaming.common.rows.PACKED`, which is Arrow's."""


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options that Spark passes.

    Raises:
        UsageError: one is unknown or not valid.
    """
    unknown = [name for name in options if name.lower() not in KNOWN and name.lower() != "path"]
    if unknown:
        raise UsageError(f"the data source segtail-job has no option {unknown[0]!r}; it knows {', '.join(KNOWN)}")
    given = {name.lower(): value for name, value in options.items()}
    parsed = SourceOptions(
        agents=_targets(given.get("agents", "")),
        files=ClientFiles(**{name.removeprefix("agent_"): Path(given[name]) for name in FILES if name in given}),
        cluster_id=given.get("cluster_id", ""),
        address_file=Path(given["address_file"]) if "address_file" in given else None,
        consumer=given.get("consumer", ""),
        start_from=_one_of(given, "start_from", StartFrom.ACTIVE, tuple(StartFrom)),
        shards=_number(given, "shards", 64, least=1),
        max_bytes=_number(given, "max_bytes", 2 << 30, least=1),
        wait_ms=_number(given, "wait_ms", 0, least=0),
        run=given.get("run", ""),
        checks=Path(given["checks"]) if "checks" in given else None,
        counted=Path(given["counted"]) if "counted" in given else None,
        schedule=Path(given["schedule"]) if "schedule" in given else None,
    )
    if not parsed.agents and parsed.address_file is None:
        raise UsageError(f"the data source segtail-job needs the option agents: {FORM}, separated by commas")
    return parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Where the agents are, and how much a micro-batch takes.

    ``agents``: where they are. ``files``: the paths of certificates and the token. ``cluster_id``: agents of another cluster are left
    alone, "" accepts any. ``address_file``: a file with the address of an agent whose port changes. ``consumer``: the job's id, "" for
    none. ``start_from``: see `streaming.broker.protocol.consumer_messages.Register`.
    ``max_bytes``: of logs in one micro-batch. ``wait_ms``: how long an agent may wait for something new before it answers.

    ``run``: names this run of the query, "" for a name that is drawn. ``counted``: a file on this host that says what the job has counted
    (`streaming.spark.source.counted_file`); without it, a reader has counted nothing when it begins, and all that it plans arrives.

    ``checks``: a file on this host in which the source stores its last check for work. Only a job of segtail sets it: such a job polls the
    agents too. ``schedule``: a file that defines when to check (`streaming.common.pace`); without it every request of Spark is a
    check.
    """

    agents: tuple[Target, ...]
    files: ClientFiles
    cluster_id: str
    address_file: Path | None
    consumer: str
    start_from: str
    shards: int
    max_bytes: int
    wait_ms: int
    run: str = ""
    checks: Path | None = None
    counted: Path | None = None
    schedule: Path | None = None

    def addresses(self) -> tuple[str, ...]:
        """The present addresses, without that of a file that does not exist yet."""
        found = addresses(self.agents, tls=self.files.ca is not None)
        if self.address_file is None:
            return found
        try:
            written = self.address_file.read_text().strip()
        except FileNotFoundError:
            return found
        return (*found, written) if written else found


def _targets(written: str) -> tuple[Target, ...]:
    try:
        return tuple(Target.parse(each.strip()) for each in written.split(",") if each.strip())
    except ValueError as error:
        raise UsageError(f"option agents: {written!r} is not {FORM}, separated by commas") from error


def _one_of(given: Mapping[str, str], name: str, default: str, values: tuple[str, ...]) -> str:
    value = given.get(name, default)
    if value not in values:
        raise UsageError(f"option {name}: {value!r} is none of {', '.join(values)}")
    return value


def _number(given: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    value = given.get(name, str(default))
    if not (value.isascii() and value.isdigit()) or int(value) < least:
        raise UsageError(f"option {name}: {value!r} is not a whole number from {least} up")
    return int(value)
