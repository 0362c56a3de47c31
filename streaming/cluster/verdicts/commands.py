"""The command lines of Kafka's own tools that help, or why there is none; and what mends it where data past its limit stays."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from streaming.broker.protocol.cluster_messages import MetadataChange
from streaming.cluster.verdicts.admin_events import value_text
from streaming.common.short_names import is_short_form
from streaming.common.units import format_duration, format_size, format_time
from streaming.kafka.groups.group_states import GroupType

_PRICES = {
    "retention.bytes": (format_size, "takes up to {} more on disk"),
    "retention.ms": (lambda limit_ms: format_duration(limit_ms / 1000), "keeps records on disk {} longer"),
}
"""How the value of a limit is written, and what a higher one costs."""

ANY_SERVER = "HOST:PORT"
_LONGEST_NAME = 1000

_READS, _READ_TWICE = "nothing: it only reads", "nothing: what was read since is read once more"

COSTS: Mapping[str, str] = {
    "why": _READS,
    "retention": _READS,
    "transactions": _READS,
    "disk": _READS,
    "dated_in_future": _READS,
    "verify": _READS,
    "record": _READS,
    "list_directory": _READS,
    "describe_transaction": _READS,
    "describe_topics": _READS,
    "describe_topic": _READS,
    "keep_longer": "nothing: it keeps more on disk, and says how much",
    "take_back": "nothing: it is given where the change let retention delete earlier",
    "date_by_broker": "no record, but the timestamps of the producers from then on",
    "reset_to_earliest": _READ_TWICE,
    "reset_to": f"{_READ_TWICE}. It never goes forwards",
    "abort": "the records of a transaction that no coordinator knows any more: without it no consumer reads them, nor what follows",
    "terminate": "the records of the open transaction, as its timeout does; it is given only for one that is stuck",
    "unregister": "what the cluster knows of a broker: only for one that is gone for good, after its partitions were reassigned",
}
"""What each command may lose, by the name of what makes it: all that segtail prints are made here, and none loses a record that another one
would keep. So none goes to the end of a log, whatever is there now, nor over a damaged batch, which another replica may have whole.
"""

MOVING, FUTURE, HIGH_WATERMARK = "moving", "future_timestamp", "high_watermark"

REMOTE, HEAD_OF_LINE, ACTIVE = "remote_copy", "head_of_line", "active_segment"
"""The reasons, as `streaming.rules.retention_rule.BLOCKED` has them."""

_YEAR_2000_MS, _DAY_MS = 946_684_800_000, 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """The commands for one cluster."""

    server: str = ""  # ``HOST:PORT`` of a broker, "" if none is known
    asked: str = ""  # the option by which segtail's own commands get their answer from where this one comes from, quoted for a shell
    redacted: bool = False  # names of groups and transactional ids are not Kafka's own

    def keep_longer(self, topic: str, name: str, limit: int, least: int = 0) -> Command:
        """Double a limit of a topic, or raise it to ``least`` where that is more; -1 is no limit."""
        if limit < 0:
            return Command(reason="its limits are not known")
        longer = max(2 * limit, least)
        words = f"--alter --entity-type topics {option('--entity-name', topic)} --add-config {name}={longer}"
        command = self._line(f"kafka-configs.sh --bootstrap-server {self._server} {words}", topic)
        form, price = _PRICES[name]
        more = price.format(form(longer - limit))
        changes = f"The command raises {name} from {form(limit)} to {form(longer)}: each replica of the topic {more}"
        return replace(command, changes=changes) if command.line else command

    def take_back(self, change: MetadataChange) -> Command:
        """Give a configuration the value that it had before a change."""
        if change.before is not None and not re.fullmatch(r"-?[0-9]+", change.before):
            return Command(reason="its former value is no number")
        of_broker = f"--entity-name {change.broker}" if change.broker >= 0 else "--entity-default"
        entity = f"topics {option('--entity-name', change.topic)}" if change.topic else f"brokers {of_broker}"
        former = f"--delete-config {change.name}" if change.before is None else f"--add-config {change.name}={change.before}"
        line = f"kafka-configs.sh --bootstrap-server {self._server} --alter --entity-type {entity} {former}"
        command = self._line(line, *([change.topic] if change.topic else []))
        changes = f"The command takes that back: {change.name} is {value_text(change.name, change.before)} again"
        return replace(command, changes=changes) if command.line else command

    def date_by_broker(self, topic: str) -> Command:
        """Let the broker date the records of a topic when it appends them."""
        words = f"--alter --entity-type topics {option('--entity-name', topic)} --add-config message.timestamp.type=LogAppendTime"
        return self._line(f"kafka-configs.sh --bootstrap-server {self._server} {words}", topic)

    def abort(self, topic: str, partition: int, first_offset: int) -> Command:
        """End a hanging transaction (`TransactionsCommand.AbortTransactionCommand`).

        Never use it for any other transaction: the aborted data is lost without its producer's knowledge, and its coordinator would not
        know.
        """
        words = f"abort {option('--topic', topic)} --partition {partition} --start-offset {first_offset}"
        return self._line(f"kafka-transactions.sh --bootstrap-server {self._server} {words}", topic)

    def describe_transaction(self, transactional_id: str) -> Command:
        """Ask the coordinator of a transaction."""
        words = f"describe {option('--transactional-id', transactional_id)}"
        return self._line(f"kafka-transactions.sh --bootstrap-server {self._server} {words}", transactional_id, private=True)

    def terminate(self, transactional_id: str) -> Command:
        """End the transaction of a transactional id, whatever producer it has (`TransactionsCommand.ForceTerminateTransactionsCommand`).

        The tools of 4.3.1 have it and those of 3.9.2 have not. It asks for a new epoch, which every coordinator understands.
        """
        words = f"forceTerminateTransaction {option('--transactionalId', transactional_id)}"
        return self._line(f"kafka-transactions.sh --bootstrap-server {self._server} {words}", transactional_id, private=True)

    def describe_topics(self, which: str) -> Command:
        """List the partitions with a problem, by the option of Kafka's tool that selects them."""
        return Command(f"kafka-topics.sh --bootstrap-server {self._server} --describe {which}")

    def describe_topic(self, topic: str) -> Command:
        """Show who leads the partitions of a topic, and which replicas are in sync."""
        return self._line(f"kafka-topics.sh --bootstrap-server {self._server} --describe {option('--topic', topic)}", topic)

    def unregister(self, broker: int) -> Command:
        """Let the cluster forget a broker that is gone for good."""
        return Command(f"kafka-cluster.sh unregister --bootstrap-server {self._server} --id {broker}")

    def why(self, group: str) -> Command:
        """Ask segtail what a group waits for."""
        return self._line(self._segtail("why", group), group, private=True, short=True)

    def retention(self, topic: str) -> Command:
        """Ask segtail what of a topic is kept, and what goes next."""
        return self._line(self._segtail("retention", topic), topic)

    def transactions(self, topic: str) -> Command:
        """Ask segtail which transactions of a topic are open."""
        return self._line(self._segtail("transactions", topic), topic)

    def dated_in_future(self, directory: str) -> Command:
        """Show the batches of a log that are dated more than a minute ahead, with their producers: what is being written is not."""
        return self._line(f'segtail dump --from-time "$(($(date +%s) + 60))" {_argument(directory)}', directory)

    def verify(self, directory: str) -> Command:
        """Read a log as a broker would, and say where it is damaged."""
        return self._line(f"segtail dump --verify {_argument(directory)}", directory)

    def record(self, file: str, offset: int) -> Command:
        """Show one record as it is on disk, on the broker's host."""
        return self._line(f"segtail dump --records --from-offset {offset} --to-offset {offset} {_argument(file)}", file)

    def disk(self, log_dir: str) -> Command:
        """Ask segtail, on the broker's host, what lies in a log dir for nothing, and what to do about it."""
        return self._line(f"segtail disk {_argument(log_dir)}", log_dir)

    def list_directory(self, directory: str) -> Command:
        """Try to read a directory as this user."""
        return self._line(f"ls -l {_argument(directory)}", directory)

    def of_group(self, group: str, type_: str) -> GroupCommands:
        """The commands for one of its groups."""
        return GroupCommands(
            group=group,
            share=type_ == GroupType.SHARE,
            query=type_ == GroupType.SPARK,
            server=self.server,
            asked=self.asked,
            redacted=self.redacted,
        )

    @property
    def _server(self) -> str:
        return shlex.quote(self.server) if self.server else ANY_SERVER

    def _segtail(self, command: str, name: str) -> str:
        return " ".join(filter(None, ["segtail", command, self.asked, _argument(name)]))

    def _line(self, line: str, *names: str, private: bool = False, short: bool = False) -> Command:
        """The command, unless one of the names in it cannot be copied safely.

        ``private``: one of them is redacted if any is. ``short``: the command takes short forms of names, which Kafka's tools do not.
        """
        if self.redacted and private:
            return Command(reason="names are redacted here")
        for name in names:
            if not name.isprintable():  # bidirectional characters are not, either
                return Command(reason="a name holds control characters")
            if not name or len(name) > _LONGEST_NAME:
                return Command(reason="a name is empty" if not name else f"a name has {len(name):,} characters")
            if not short and is_short_form(name):
                return Command(reason="a name is too long to be shown whole, as Kafka's tools need it")
        return Command(line)


@dataclass(frozen=True, slots=True)
class Command:
    """``line`` is "" if there is no command; then ``reason`` says why. ``changes``: which value it changes, and the price: a sentence."""

    line: str = ""
    reason: str = ""
    changes: str = ""


def option(name: str, value: str) -> str:
    """An option with its value, quoted for a shell. A value that begins like an option is written so that no tool takes it for one."""
    return f"{name}={shlex.quote(value)}" if value.startswith("-") else f"{name} {shlex.quote(value)}"


def _argument(value: str) -> str:
    """The last argument, quoted for a shell, which no tool takes for an option."""
    return f"{'-- ' if value.startswith('-') else ''}{shlex.quote(value)}"


def tool_of_groups(*, share: bool) -> str:
    """Kafka's tool for groups of a kind."""
    return "kafka-share-groups.sh" if share else "kafka-consumer-groups.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCommands(Commands):
    """The commands for one consumer group; ``share``: a share group, which has a tool of its own; ``query``: a streaming query."""

    group: str
    share: bool = False
    query: bool = False

    def reset_to_earliest(self, topic: str, partition: int, *, by_itself: bool = True) -> Command:
        """Let the group begin at the log start; ``by_itself``: a share group does so without a command."""
        if self.share and by_itself:
            return Command(reason="a share group goes on at the log start by itself")
        return self._reset(topic, partition, "--to-earliest")

    def reset_to(self, topic: str, partition: int, offset: int) -> Command:
        """Let the group begin at an offset."""
        if self.share:
            return Command(reason="kafka-share-groups.sh resets to no offset, but only to either end or to a time")
        return self._reset(topic, partition, f"--to-offset {offset}")

    def _reset(self, topic: str, partition: int, to: str) -> Command:
        if self.query:
            return Command(reason="the offsets of a streaming query are in its checkpoint, where no tool of Kafka's moves them")
        words = f"{option('--group', self.group)} {option('--topic', f'{topic}:{partition}')} --reset-offsets {to} --execute"
        return self._line(f"{tool_of_groups(share=self.share)} --bootstrap-server {self._server} {words}", self.group, topic, private=True)


NO_COMMAND = Command()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedRemedy:
    """``why`` and ``mend``: sentences, of which ``mend`` has what it costs."""

    why: str
    mend: str


REMEDIES = {
    MOVING: BlockedRemedy(
        why="A copy of the log is being made in another log dir of its broker, and until that move is over, nothing of the log is deleted "
        "or compacted.",
        mend="Wait for the move, or raise replica.alter.log.dirs.io.max.bytes.per.second, which slows it down; a restart does not end it.",
    ),
    FUTURE: BlockedRemedy(
        why="The first segment holds a record dated in the future, so nothing behind it is deleted by time before that date.",
        mend="Mend the producer, or set message.timestamp.type=LogAppendTime on the topic; then kafka-delete-records.sh up to the end of "
        "that segment frees the space: no reader gets anything from before that offset any more.",
    ),
    HIGH_WATERMARK: BlockedRemedy(
        why="The first segment is not replicated to its end: some in-sync replica does not follow, or fewer are in sync than "
        "min.insync.replicas.",
        mend="Bring the replica back, or take it out by a reassignment.",
    ),
    REMOTE: BlockedRemedy(
        why="The first segment waits for its copy in remote storage.",
        mend="Look for RemoteLogManager in the broker's log, and for an open transaction in the partition.",
    ),
    HEAD_OF_LINE: BlockedRemedy(
        why="A later segment is past the limit, but the first one has younger records and must be deleted before it.",
        mend="It ends by itself when the first one is past the limit; retention.bytes on the topic bounds it, and deletes younger records, "
        "too.",
    ),
    ACTIVE: BlockedRemedy(
        why="The only segment still takes appends: it is deleted once it is rolled, by time and by size, and this is how Kafka works.",
        mend="A smaller segment.ms or segment.bytes rolls it earlier; an idle partition never rolls by itself.",
    ),
}


def wrong_unit(timestamp_ms: int, now_ms: int) -> str:
    """A sentence, if a date that is far ahead is one of since 2000 in a smaller unit; "" if not."""
    for unit, parts in (("microseconds", 1_000), ("nanoseconds", 1_000_000)):
        if _YEAR_2000_MS <= timestamp_ms // parts <= now_ms + _DAY_MS:
            then = format_time(timestamp_ms // parts)
            return f"It looks as if {unit} were taken for milliseconds: the record is of {then}, so delete none that is still to be read."
    return ""


def shows(reason: str, commands: Commands, topic: str, directory: str) -> Command:
    """The command that shows what blocks a partition of a topic.

    Why data past its limit stays, the command that shows what holds it, and what mends it: the words of every face and of the alert.
    No command here changes anything. What mends it is in words, for each way has a price.

    Args:
        directory: that of the partition, on its broker's host; "" if it is not known.
    """
    if reason == FUTURE:
        return commands.dated_in_future(directory) if directory else Command(reason="the log dir is not known")
    if reason == HIGH_WATERMARK:
        return commands.describe_topic(topic)
    return commands.transactions(topic) if reason == REMOTE else commands.retention(topic)
