"""What each verdict about a consumer group says, in words for people."""

from dataclasses import dataclass

from streaming.broker.protocol.group_json import BatchCheck, GroupPartition, GroupSummary, HoldingTransaction, PendingOffset
from streaming.common.formatting import format_age, format_count, format_duration, format_name, format_size, format_time

REASONS = {
    "coordinator_not_observed": "the log of its coordinator is not read here",
    "coordinator_behind": "the log of its coordinator is not read to its end",
    "commit_not_replicated": "what it has committed is above the high watermark of its coordinator's log, which is known as of seconds ago",
    "leader_not_observed": "the log dirs of the partition's leader are not read here",
    "filling": "the segments of the partition are still being counted",
    "remote_log_start": "its next record is only in remote storage",
    "damaged": "a part of the log that lies between is damaged",
    "topic_gone": "the topic is gone",
    "topic_made_anew": "the topic was deleted and made anew after the commit",
    "agent_version": "the agent of the partition's leader is of an earlier version",
    "not_understood": "the commit is damaged, or of a later version of Kafka",
    "not_committed": "nothing is committed yet",
    "beyond_end": "the committed offset is beyond the end of the log",
}
"""The reasons why a lag is not known."""


_WHO_ENDS_IT = ". `segtail transactions --topic __consumer_offsets` shows who will end it"

_USUAL = ("", "open", "unknown")
"""Verdicts about transactions that need no word."""

ENDED_BY_ITSELF = {
    "open": "its producer ends the transaction, or its coordinator does when the transaction's timeout has passed. To abort it by hand may "
    "destroy work that goes on",
    "overdue": "the transaction's timeout has passed, and only its coordinator may end it: look there why it does not",
    "two_phase": "the transaction has no timeout: an outer transaction decides when and how it ends",
    "completing": "its coordinator has already decided how the transaction ends, and only its marker is missing",
}
"""Why nobody is to abort a transaction of that verdict."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences as of ``now_ms``, Unix milliseconds."""

    now_ms: int

    def lost(self, partition: GroupPartition, *, members: bool = False) -> str:
        """Records were deleted before they were read. ``members``: the group has some, and Kafka resets no offset of such a group."""
        known = partition.lost_records >= 0
        count = ("" if known else "up to ") + format_count(partition.lost_records if known else partition.lost_offsets, "record")
        were = "was" if (partition.lost_records if known else partition.lost_offsets) == 1 else "were"
        return (
            f"already deleted: {count} between the committed offset {partition.committed} and the log start {partition.log_start} {were} "
            "deleted unread. auto.offset.reset decides where its consumers go on: with none they fail until the offset is reset, "
            f"with latest they skip what is left{_stop_first(members=members)}"
        )

    def went_on(self, at_ms: int) -> str:
        """Records were deleted before they were read, and the group has gone on since."""
        return f"records were deleted unread at {format_time(at_ms)} ({self._age(at_ms)}); it has gone on behind them"

    def will_lose(self, partition: GroupPartition) -> str:
        """Retention deletes what is not read."""
        known = partition.loss_records >= 0 and partition.loss_bytes >= 0
        stake = (
            f": {format_count(partition.loss_records, 'record')}, {format_size(partition.loss_bytes)}, "
            "with all that is due at the same check"
            if known
            else ""
        )
        when = (
            "with the next check"
            if partition.loss_ms <= self.now_ms
            else f"at {format_time(partition.loss_ms)} ({self._age(partition.loss_ms)})"
        )
        limit = " by retention.bytes" if partition.loss_by_size else ""
        assumed = " by limits that are assumed," if partition.limits_assumed else ""
        return f"its oldest unread records will be deleted{limit}{assumed} {when} unless they are read before{stake}"

    def damaged(self, partition: GroupPartition, batch: BatchCheck, *, members: bool = False) -> str:
        """The next batch cannot be read. ``members``: as in `lost`."""
        where = f" of {format_name(batch.file, 500)}" if batch.file else f" of the segment {batch.segment:020}.log"
        return (
            f"the next batch is damaged, and consumers cannot get over it: {batch.error}, at byte {batch.position}{where}, "
            f"offset {partition.next_offset}. Another replica may have it whole{_stop_first(members=members)}"
        )

    def too_large(self, partition: GroupPartition, fetch_bytes: int) -> str:
        """The next batch is larger than a consumer fetches."""
        return (
            f"the next batch has {format_size(partition.next_batch_bytes)}, more than the {format_size(fetch_bytes)} that consumers fetch "
            f"of a partition, offset {partition.next_offset}. Kafka's own client gets it alone; others need a larger "
            "max.partition.fetch.bytes, or more memory"
        )

    def held(self, partition: GroupPartition) -> str:
        """An open transaction holds back what is left."""
        left = max(0, partition.high_watermark - partition.last_stable_offset)
        rest = f"{format_count(left, 'offset')} from {partition.last_stable_offset} on cannot be read with read_committed until it ends"
        holding = partition.held_by
        if holding is None:
            return f"held up by an open transaction: {rest}"
        name, since = _named(holding.transactional_id), self._since(holding.start_ms)
        verdict = f", which is {holding.verdict}," if holding.verdict not in _USUAL else ""
        ends = self._ends(holding)
        return f"held up by a transaction of producer {holding.producer_id}{name}{verdict} open{since}: {rest}{ends}"

    def beyond_end(self, partition: GroupPartition, *, members: bool = False) -> str:
        """The committed offset is not in the log. ``members``: as in `lost`."""
        return (
            f"the committed offset {partition.committed} is beyond the end of the log, {partition.high_watermark}: records were cut off, "
            "as by an unclean election, or too high an offset was committed. Where its consumers go on, auto.offset.reset decides"
            f"{_stop_first(members=members)}"
        )

    def pending(self, first: PendingOffset, count: int) -> str:
        """Commits of an open transaction."""
        name, since = _named(first.transactional_id), self._since(first.since_ms)
        verdict = f", which is {first.verdict}" if first.verdict not in _USUAL else ""
        more = f", and {count - 1} more" if count > 1 else ""
        where = f"__consumer_offsets-{first.coordinator}"
        return (
            f"commits wait in an open transaction of producer {first.producer_id}{name} in {where}{since}{verdict}{more}: its consumers "
            f"get UNSTABLE_OFFSET_COMMIT{self._ends(first) or _WHO_ENDS_IT}"
        )

    def stopped(self, partition: GroupPartition) -> str:
        """It does not move."""
        since = "at least since" if partition.stopped_earlier else "since"
        return (
            f"stopped: the committed offset {partition.committed} has not moved {since} {format_time(partition.stopped_since_ms)} "
            f"({self._age(partition.stopped_since_ms)}) although the record at {partition.next_offset} is readable; "
            f"{self._left(partition)}. The disk does not show what its consumers do with the record"
        )

    def slower(self, partition: GroupPartition) -> str:
        """It falls back."""
        if not partition.consumed_rate:
            return f"nothing is read lately, and {partition.appended_rate:,.1f} records/s are appended; {self._left(partition)}"
        return (
            f"slower than its producers: {partition.consumed_rate:,.1f} records/s are read and {partition.appended_rate:,.1f} appended, "
            f"so it never catches up; {self._left(partition)}"
        )

    def catching_up(self, partition: GroupPartition) -> str:
        """It comes nearer."""
        seconds = partition.lag / (partition.consumed_rate - partition.appended_rate)
        return (
            f"catches up in {format_duration(seconds)}, at {format_time(self.now_ms + 1000 * seconds)}: "
            f"{partition.consumed_rate:,.1f} records/s are read and {partition.appended_rate:,.1f} appended; {self._left(partition)}"
        )

    def skewed(self, lag: int, total: int) -> str:
        """One partition is the problem."""
        return f"this partition has {100 * lag // total} % of the lag: {lag:,} of {format_count(total, 'record')}"

    def no_members(self, summary: GroupSummary) -> str:
        """Nobody reads."""
        return f"no member{self._since(summary.state_ms)}, and not everything is read"

    def unknown(self, partition: GroupPartition) -> str:
        """The lag is not known."""
        return f"not known: {REASONS.get(partition.unknown, partition.unknown) or 'the ends of the partition are not known'}"

    def no_lag(self, partition: GroupPartition) -> str:
        """There is nothing to read."""
        return f"nothing to do: {REASONS[partition.unknown]}"

    def only_markers(self, partition: GroupPartition) -> str:
        """The rest is no record."""
        last = "offset is" if partition.lag_offsets == 1 else f"{partition.lag_offsets:,} offsets are"
        return f"nothing to do: the last {last} only markers, aborted or compacted records"

    def nothing_left(self) -> str:
        """It is at the end."""
        return "nothing to do: everything is read"

    def left(self, partition: GroupPartition) -> str:
        """It goes on."""
        assumed = "; when it will be deleted is not sure, because the limits are assumed" if partition.limits_assumed else ""
        return f"nothing found: {self._left(partition)}{assumed}"

    def _left(self, partition: GroupPartition) -> str:
        if partition.lag_records_read_committed < 0:
            return f"{format_count(partition.lag_offsets, 'offset')} left"
        size = f", {format_size(partition.lag_bytes)}" if partition.lag_bytes >= 0 else ""
        oldest = partition.next_append_ms if partition.next_append_ms >= 0 else partition.next_timestamp_ms
        since = f", the next from {format_time(oldest)} ({self._age(oldest)})" if oldest >= 0 else ""
        return f"{format_count(partition.lag_records_read_committed, 'record')} left{size}{since}"

    def _since(self, at_ms: int) -> str:
        """Since when something is so, "" if that is not known. A time as of which is judged may be before that."""
        if at_ms < 0:
            return ""
        return f" since {format_time(at_ms)} ({'after the time asked for' if at_ms > self.now_ms else self._age(at_ms)})"

    def _ends(self, transaction: HoldingTransaction | PendingOffset) -> str:
        """When its coordinator ends a transaction, "" if that is not known."""
        if transaction.deadline_ms < 0:
            return ""
        at = f"{format_time(transaction.deadline_ms)} ({self._age(transaction.deadline_ms)})"
        if transaction.deadline_ms < self.now_ms:
            return f". Its timeout has passed at {at}"
        return f". If its producer does not end it, its coordinator does at {at}"

    def _age(self, at_ms: int) -> str:
        return format_age((self.now_ms - at_ms) / 1000)


def _stop_first(*, members: bool) -> str:
    return ". Its consumers have to be stopped before an offset is reset" if members else ""


def _named(transactional_id: str) -> str:
    return f" (transactional id {format_name(transactional_id)})" if transactional_id else ""
