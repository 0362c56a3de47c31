"""What each verdict about a consumer group says, in words for people."""

from dataclasses import dataclass

from streaming.broker.protocol.group_json import (
    CUT_OFF,
    MADE_ANEW,
    PARTED,
    RESUMED,
    BatchCheck,
    GroupPartition,
    GroupSummary,
    HoldingTransaction,
    PendingOffset,
    Unlike,
)
from streaming.cluster.verdicts.commands import tool_of_groups
from streaming.cluster.verdicts.conditions import WholeLag
from streaming.cluster.verdicts.group_words import ResetWords, reset_words, stop_first
from streaming.common.units import TimeWords, capitalized, format_count, format_duration, format_name, format_size, format_time
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.groups.group_states import GroupState, GroupType

REASONS = {
    "coordinator_not_observed": "the log of its coordinator, or its high watermark, is not known here, or its agent does not answer",
    "coordinator_behind": "the log of its coordinator is not read to its end",
    "checkpoint_unread": "its checkpoint cannot be read now",
    "commit_not_replicated": "what it has committed is above the high watermark of its coordinator's log, which is known as of seconds ago",
    "leader_not_observed": "the log dirs of the partition's leader are not read here, or their agent does not answer",
    "log_unreadable": "the log of the partition cannot be read, or may not be",
    "filling": "the segments of the partition are still being counted",
    "remote_log_start": "its next record is only in remote storage",
    "damaged": "a part of the log that lies between is damaged",
    "not_in_cluster": "this partition, or its topic, is not in this cluster: perhaps the query reads another (a checkpoint names none)",
    "topic_gone": "the topic is gone",
    "topic_made_anew": "the topic was deleted and made anew after the commit",
    "not_understood": "the commit is damaged, or of a later version of Kafka",
    "not_committed": "nothing is committed yet",
    "commit_newer": "what it has committed is newer than what is known of the end of the partition, for a moment",
    "beyond_end": "the committed offset is beyond the end of the log",
}
"""The reasons why a lag is not known."""

_CAME_SO = "; they were past the retention of their topic when they were written"

_LOST_END = (
    "its log lost its end, as in a crash, with its directory, or by an unclean election that the metadata log does not show any more"
)

FEW_MARKERS = 2
"""So many offsets that were deleted after a committed one are likely markers."""

_WHO_ENDS_IT = ". `segtail transactions --topic __consumer_offsets` shows who will end it"

_WITH_UNCOMMITTED = " with read_uncommitted, as an offset behind an open transaction shows"

_USUAL = ("", "open", "unknown")
"""Verdicts about transactions that need no word."""

_BY_A_CLIENT = (
    "The log start lies inside a segment, as DeleteRecords sets it (a client, or Kafka Streams in its repartition topics), and retention "
    "deletes whole segments: a longer one keeps nothing that a client deletes. "
)

ENDED_BY_ITSELF = {
    "open": "its producer ends the transaction, or its coordinator does when the transaction's timeout has passed. To abort it by hand may "
    "destroy work that goes on",
    "overdue": "the transaction's timeout has passed, and only its coordinator may end it: look there why it does not",
    "two_phase": "the transaction has no timeout: an outer transaction decides when and how it ends",
    "completing": "its coordinator has already decided how the transaction ends, and only its marker is missing",
}
"""Why an operator is not to abort a transaction of that verdict."""

_UNLIKE: dict[str, str] = {
    Unlike.LARGEST: "that batch is larger than all {neighbors} around it",
    Unlike.PRODUCER: "it is the first of its producer among {neighbors} batches around it",
    Unlike.CODEC: "none of {neighbors} batches around it has its codec",
    Unlike.FORMAT: "none of {neighbors} batches around it has its message format",
    Unlike.LARGEST_RECORD: "the record is the largest of its batch",
    Unlike.ONLY_TOMBSTONE: "it is the only one of its batch without a value",
}
"""How a batch differs from its neighbors, or its record from the others."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences as of ``times``. ``type``, ``protocol``: of the group that they are about; of a streaming query its ``state``, too,
    since ``state_ms``.
    """

    times: TimeWords
    type: str = ""
    protocol: str = ""
    state: str = ""
    state_ms: int = -1

    def lost(self, partition: GroupPartition, began: str = "", *, members: bool = False) -> str:
        """Records were deleted before they were read, which ``began`` with something.

        ``members``: the group has some, and Kafka resets no offset of such a group.
        """
        count, now = _deleted(partition.lost_records, partition.lost_offsets)
        were = "was" if now == 1 else "were"
        reads = members and not self._shares
        fetched = ", but for what its consumers had fetched by then" if reads else ""
        every = partition.lost_lately_records + partition.lost_lately_offsets
        client = _BY_A_CLIENT if deleted_by_client(partition) else ""
        lately = f"Within the last 24 hours {_lost_lately(partition)} deleted unread in all. " if every > now else ""
        none = "" if partition.records_left or partition.held else "Nothing is left there, and no command brings back what was deleted. "
        return (
            f"already deleted: {count} between the {self._offset} {partition.committed} and the log start {partition.log_start} {were} "
            f"deleted unread{fetched}{_CAME_SO if partition.lost_expired else began}. {client}"
            f"{lately}{none}{self._resets.after_loss}{stop_first(members=reads)}"
        )

    def perhaps_lost(self, partition: GroupPartition) -> str:
        """Offsets were deleted, and nothing shows that one of them was a record."""
        one, few = partition.lost_offsets == 1, partition.lost_offsets <= FEW_MARKERS
        marker = f"likely no record{'' if one else 's'}: a transaction ends with a marker, which has an offset, too"
        many = "likely with records among them: the marker of a transaction is one offset, and only aborted records are no loss"
        return (
            f"{format_count(partition.lost_offsets, 'offset')} between the committed offset {partition.committed} and the log start "
            f"{partition.log_start} {'was' if one else 'were'} deleted, {marker if few else many}. What {'it was' if one else 'they were'} "
            "is not on disk any more"
        )

    def went_on(self, partition: GroupPartition) -> str:
        """Records were deleted before they were read, and the group has gone on since."""
        at_ms = partition.lost_lately_ms
        last = f"{self.times.at(at_ms)}{'' if partition.unknown else '; it has gone on behind them'}"
        if partition.lost_lately_records + partition.lost_lately_offsets <= 0:  # from a job that does not say how many
            return f"records were deleted unread, last at {last}"
        return f"within the last 24 hours {_lost_lately(partition)} deleted unread, last at {last}"

    def buffered(self, partition: GroupPartition) -> str:
        """Records were deleted, and its consumers may have them in memory."""
        count, number = _deleted(partition.buffered_records, partition.buffered_offsets)
        are = "is" if number == 1 else "are"
        return (
            f"reads from memory: {count} between the {self._offset} {partition.committed} and the log start {partition.log_start} {are} "
            f"deleted, and its consumers may have fetched them before. {capitalized(count)} {are} lost if they are restarted "
            "now, or if members join or leave. What they do not have counts as lost when they go on at the log start"
        )

    def will_lose(self, partition: GroupPartition, began: str = "") -> str:
        """Retention deletes what is not read, which ``began`` with something."""
        limit = " by retention.bytes" if partition.loss_by_size else ""
        assumed = " by limits that are assumed," if partition.limits_assumed else ""
        last = ", as of when its logs were read last," if partition.records_left < 0 and partition.lag_offsets < 0 else ""
        when = f"{self._checked(partition)}{last} unless they are read before"
        return f"its oldest unread records will be deleted{limit}{assumed} {when}{self._stake(partition)}{_came_late(partition)}{began}"

    def _checked(self, partition: GroupPartition) -> str:
        """When the check comes that deletes the next record."""
        if partition.loss_start_of >= 0:
            return f"by the first check after broker {partition.loss_start_of} is started, some 30 seconds later,"
        latest = format_time(partition.loss_latest_ms) if partition.loss_latest_ms > max(partition.loss_ms, self.times.now_ms) else ""
        if partition.loss_ms <= self.times.now_ms:
            return f"with the next check, by {latest}," if latest else "with the next check"
        first = self.times.at(partition.loss_ms)
        silent = (
            f" (from {self.times.at(partition.loss_silent_ms)} on if nothing more is written there)"
            if partition.loss_silent_ms >= 0
            else ""
        )
        return (f"between {first} and {latest}" if latest else f"at {first}") + silent

    def _stake(self, partition: GroupPartition) -> str:
        """What is deleted with the next record."""
        most, least = partition.loss_records, partition.loss_records_least
        if partition.loss_start_of >= 0:
            return f": at least {format_count(least, 'record')}, which are due now" if least >= 0 else ""
        if most < 0 or partition.loss_bytes < 0:
            at_least = f": {format_count(least, 'record')}, and what comes there until then, with all that is due at the same check"
            return at_least if least >= 0 else ""
        count = format_count(most, "record")
        if 0 <= least < most:
            return f": between {least:,} and {count}, at most {format_size(partition.loss_bytes)}, with all that is due at the same check"
        return f": {count}, {format_size(partition.loss_bytes)}, with all that is due at the same check"

    def damaged(self, partition: GroupPartition, batch: BatchCheck) -> str:
        """The next batch cannot be read."""
        first = max(partition.committed, partition.next_offset, batch.base_offset)
        after = f"offset {batch.last_offset + 1}" if batch.last_offset >= 0 else "the next batch that is sound"
        where = f" of {format_name(batch.file, 500)}" if batch.file else f" of the segment {batch.segment:020}.log"
        return (
            f"the next batch is damaged, and consumers cannot get over it: {batch.error}, at byte {batch.position}{where}, "
            f"offset {first}. Another replica may have it whole, and has to lead then. If none has, a reset of the group to {after} loses "
            "what is in the batch"
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
        offset = "offset" if self.type == GroupType.SPARK else self._offset
        passed = f"{self._passed(partition)}: to begin at the end skips them" if partition.passed_records else "no record is there now"
        return (
            f"the {offset} {partition.committed} is beyond the end of the log, {partition.high_watermark}: {self._ended(partition)}; "
            f"{passed}. {self._resets.beyond_end}{stop_first(members=members)}"
        )

    def other_history(self, partition: GroupPartition, *, members: bool = False) -> str:
        """The committed offset is not of the history that its log has now, or perhaps not. ``members``: as in `lost`."""
        if partition.history == RESUMED:
            first, last = max(partition.log_start, 0), partition.history_at - 1
            which = f"offset {first} was" if first == last else f"offsets {first} to {last} were"
            return (
                f"the topic was deleted and made anew{self._at(partition.history_ms)}, and the first offset that was committed in it, "
                f"{partition.history_at}, is the one that was deleted with the old topic: {which} perhaps never read. Then the command "
                f"reads them, and all that was read since once more{stop_first(members=members)}"
            )
        perhaps = "perhaps " if partition.history == PARTED else ""
        some = (
            f"{self._passed(partition)}: its consumers skip them"
            if partition.passed_records
            else "the log is empty: its consumers skip what comes"
        )
        return (
            f"the {self._offset} {partition.committed} is {perhaps}not valid any more: {self._ended(partition)}; "
            f"{some} if they go on at this offset{stop_first(members=members)}"
        )

    def _ended(self, partition: GroupPartition) -> str:
        """Why a committed offset is not valid any more; what is not proven stands beside what else it may be."""
        at, parted = self._at(partition.history_ms), partition.history_at
        where = f"at {parted}" if parted > partition.log_start else f"at {parted} or before"
        began = f"leader epoch {partition.history_epoch} began{at}"
        high = f"too high an offset was {'set' if self._shares else 'committed'}"
        if partition.history == MADE_ANEW:
            return f"the topic was deleted and made anew{at}"
        if partition.history == CUT_OFF and partition.history_unclean:
            return f"an unclean election cut its log off {where}, after the commit: {began}"
        if partition.history == CUT_OFF:
            return f"its log was cut off {where} after the commit, perhaps by the unclean election by which {began}, perhaps by a crash"
        if partition.history == PARTED and partition.history_unclean:
            return f"perhaps an unclean election cut its log off {where}, after the commit ({began}), or {high} before"
        if partition.history == PARTED:
            return (
                f"the record before it is not in the log, which is of leader epoch {partition.history_epoch} from {parted} on"
                f"{self._since(partition.history_ms)}. Perhaps {_LOST_END}, or the topic was made anew while its consumers went on"
            )
        cluster = "the query reads another cluster, which its checkpoint does not name, " if self.type == GroupType.SPARK else ""
        return (
            f"perhaps {cluster}{high}, by hand or before its data was there, the topic was made anew while its consumers went on, or "
            f"{_LOST_END}: nothing on disk shows which"
        )

    @staticmethod
    def _passed(partition: GroupPartition) -> str:
        """How many records there are that the group is not known to have read."""
        passed, where = partition.passed_records, "from there on" if partition.history == CUT_OFF else "in the log"
        first = max(partition.go_on_at, partition.log_start, 0)
        count = format_count(passed if passed >= 0 else min(partition.committed, partition.high_watermark) - first, "record")
        proven = partition.history == CUT_OFF or (partition.history == MADE_ANEW and partition.unknown == "topic_made_anew")
        read = "none of which it has read" if proven else "and which of them it has read is not on disk"
        return f"{'' if passed >= 0 else 'up to '}{count} {'is' if passed == 1 else 'are'} {where}, {read}"

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

    def stopped(self, partition: GroupPartition, *, deserted: bool = False) -> str:
        """The sentence of a partition that does not move. ``deserted``: no member is there that could do anything with the record."""
        at, since = self.times.at, f"since {self.times.at(partition.stopped_since_ms)}"
        done = ", and nothing after it was done with," if self._shares else ""
        readable = f"the record at {partition.next_offset} is readable" if partition.next_offset >= 0 else "records were readable"
        if partition.stopped_earlier and 0 <= partition.commit_ms < partition.stopped_since_ms:  # as of a copy, whose files are newer
            since, readable = f"since it was last committed, {at(partition.commit_ms)},", f"{readable}, at least {since}"
        elif partition.stopped_earlier:
            since = f"at least {since}"
        return (
            f"stopped: the {self._offset} {partition.committed} has not moved{done} {since} "
            f"although {readable}; {self._left(partition)}. {self._next_record(partition)}{'' if deserted else f'. {self._doing}'}"
        )

    @staticmethod
    def _next_record(partition: GroupPartition) -> str:
        """What lies where it stands."""
        batch = partition.batch
        if batch is None or batch.size < 0:
            return "What is in the record was not looked at here"
        at, where = batch.record_offset, f"a batch of {format_count(batch.records, 'record')}, {format_size(batch.size)}, {_made(batch)}"
        if at < 0:
            return f"It lies in {where}; {batch.error or 'its records are not opened here'}"
        size = f"has {format_size(batch.record_bytes)}{' and no value' if batch.tombstone else ''}"
        passed = "" if at == partition.committed else ", the first one from there on,"
        unlike = [_UNLIKE[each] for each in batch.unlike if each in _UNLIKE]
        differs = f". {capitalized('; '.join(unlike))}".format(neighbors=f"{batch.neighbors:,}") if unlike else ""
        return f"The record at {at}{passed} {size} and lies in {where}{differs}"

    @property
    def _doing(self) -> str:
        """What is known of those who should read the next record."""
        if self.type != GroupType.SPARK:
            return "The disk does not show what its consumers do with the record"
        if self.state == GroupState.PLANNED:
            return f"A micro-batch is planned{self._since(self.state_ms)} and not committed: it takes long, or it fails and is run again"
        return f"No micro-batch was planned after the last one, committed{self._at(self.state_ms)}: the query does not run, or waits"

    def will_expire(self, partition: GroupPartition) -> str:
        """Its coordinator forgets it."""
        at = self._at(partition.expiration_ms)
        return (
            f"its coordinator deletes the committed offset {partition.committed}{at}, when nobody has used it for "
            f"offsets.retention.minutes; {self._resets.begins} then"
        )

    def slower(self, partition: GroupPartition) -> str:
        """The sentence of a partition that falls back."""
        if not partition.consumed_rate:
            return f"nothing was read lately, while {partition.appended_rate:,.1f} records/s are appended; {self._left(partition)}"
        return (
            f"slower than its producers: {partition.consumed_rate:,.1f} records/s are read and {partition.appended_rate:,.1f} appended, "
            f"so it never catches up; {self._left(partition)}"
        )

    def catching_up(self, partition: GroupPartition) -> str:
        """The sentence of a partition that catches up."""
        seconds = partition.lag / (partition.consumed_rate - partition.appended_rate)
        return (
            f"catches up in {format_duration(seconds)}, at {format_time(self.times.now_ms + 1000 * seconds)}: "
            f"{partition.consumed_rate:,.1f} records/s are read and {partition.appended_rate:,.1f} appended; {self._left(partition)}"
        )

    def between_runs(self, partition: GroupPartition, summary: GroupSummary) -> str:
        """The sentence of a group that has no member between its runs, as usual."""
        return (
            f"fine: it is between its runs: its last commit was at {self.times.at(summary.last_commit_ms)}, "
            f"and it usually pauses for {format_duration(summary.interval_ms / 1000)}; "
            f"{self._left(partition)}"
        )

    def skewed(self, partition: GroupPartition, whole: WholeLag) -> str:
        """One partition is the problem."""
        part, noun = (partition.lag_offsets, "offset") if whole.in_offsets else (partition.records_left, "record")
        return f"this partition has {100 * part // whole.total} % of the lag: {part:,} of {format_count(whole.total, noun)}"

    def no_members(self, summary: GroupSummary, *, invalid: bool = False) -> str:
        """The sentence of a group without a member. ``invalid``: some offsets are not valid: consumers that go on there skip records."""
        start = "Set back the offsets that are not valid, and only then start its consumers" if invalid else "Start its consumers"
        since = self._since(summary.state_ms)
        tool = tool_of_groups(share=summary.type == GroupType.SHARE)
        return (
            f"it has {f'had no member{since}' if since else 'no member'}, and something is left to read. {start}: of what they "
            f"subscribe to, they read on where it has committed. If nobody needs the group, {tool} --delete removes it"
        )

    def fine(self, partition: GroupPartition) -> str:
        """The sentence of a partition that goes on, or is at the end."""
        if partition.unknown == "topic_gone":
            return f"fine: {REASONS[partition.unknown]}"
        assumed = "; when it will be deleted is not sure, because the limits are assumed" if partition.limits_assumed else ""
        return f"fine: {self._left(partition)}{assumed}" if partition.lag else "fine: nothing is left to read"

    def unknown(self, partition: GroupPartition) -> str:
        """Something about it is not known: its lag, or whether it is held up, or has stopped."""
        if partition.held:
            return self._perhaps_held(partition)
        if partition.unknown or partition.records_left <= 0:
            return self._without_lag(partition)
        return self._undated(partition) if partition.undated else self._compacted(partition)

    def _without_lag(self, partition: GroupPartition) -> str:
        """Why the lag is not known. A command that reads once has counted all that was there, so what is missing has gone meanwhile."""
        if partition.unknown == "filling" and partition.lost_lately_records < 0:
            return "not known: segments of the partition were deleted while they were read here; ask again, or ask a job"
        return f"not known: {REASONS.get(partition.unknown, partition.unknown) or 'the ends of the partition are not known'}"

    def _perhaps_held(self, partition: GroupPartition) -> str:
        """An open transaction holds back what is left, and nothing shows since when."""
        holding = partition.held_by
        left = format_count(max(0, partition.high_watermark - partition.last_stable_offset), "offset")
        waiting = f"{left} from {partition.last_stable_offset} on are behind"
        which = "an open transaction"
        if holding is not None:
            which = f"a transaction of producer {holding.producer_id}{_named(holding.transactional_id)}"
        return (
            f"not known whether it is held up: {waiting} {which}, and since when is not on disk: the timestamps of its "
            "log do not agree with the times of its files. Ask again in a while, or ask a job that watches the log"
        )

    def _undated(self, partition: GroupPartition) -> str:
        """What follows depends on when its next record was appended, or on when it was committed."""
        why = "when its next record was appended is not on disk, and the timestamps of its log do not agree with the times of its files"
        if partition.commit_ms > self.times.now_ms:
            why = f"its coordinator's clock is ahead, and says that it was committed at {format_time(partition.commit_ms)}"
        return f"not known whether it has stopped: {why}; {self._left(partition)}. A job that watches the log knows it"

    def _compacted(self, partition: GroupPartition) -> str:
        """What was next is not there any more."""
        return (
            f"not known whether it has stopped: compaction has removed the record at {partition.committed}, and when that was readable is "
            f"not on disk; {self._left(partition)}. A job that watches the log knows it"
        )

    def not_committed(self, partition: GroupPartition) -> str:
        """Nothing shows what of the log was read."""
        at_most = partition.uncommitted_records
        if not at_most:
            return "nothing to do: nothing is committed, and there is no record in the log"
        records = f"at most {format_count(at_most, 'record')} in the log" if at_most > 0 else "how many records are in the log is not known"
        whole = 0 <= partition.log_start == partition.last_stable_offset < partition.high_watermark
        held = "; an open transaction holds all of it back from readers of committed data: see `segtail transactions`" if whole else ""
        return f"nothing committed; {records}; {self._resets.begins}{held}"

    def left_over(self, partition: GroupPartition) -> str:
        """The sentence of a partition that no member of the group reads."""
        expire = f"expire{self._at(partition.expiration_ms)}" if partition.expiration_ms >= 0 else "stay until they are deleted by hand"
        nobody = "its last members did not subscribe" if self.state == GroupState.EMPTY else "no member subscribes"
        return f"left over: {nobody} to the topic; its offsets {expire}"

    def only_markers(self, partition: GroupPartition) -> str:
        """The rest is no record."""
        last = "offset is" if partition.lag_offsets == 1 else f"{partition.lag_offsets:,} offsets are"
        what = "markers or compacted records" if partition.reads_uncommitted else "markers, aborted or compacted records"
        nothing = "no record is left" if self._next_is_deleted(partition) else "nothing to do"
        return f"{nothing}: the last {last} only {what}"

    def deleted_next(self, partition: GroupPartition) -> str:
        """What follows for a streaming query although no record is lost: Spark compares offsets, whatever they were."""
        return f". Its next offset is deleted. {self._resets.after_loss}" if self._next_is_deleted(partition) else ""

    def _next_is_deleted(self, partition: GroupPartition) -> bool:
        return self.type == GroupType.SPARK and 0 <= partition.committed < partition.log_start

    @property
    def _shares(self) -> bool:
        return self.type == GroupType.SHARE

    @property
    def _offset(self) -> str:
        return "start offset" if self._shares else "committed offset"

    @property
    def _resets(self) -> ResetWords:
        return reset_words(self.type, self.protocol)

    def _left(self, partition: GroupPartition) -> str:
        if partition.records_left < 0 and partition.lag_offsets < 0:
            return "this is as of when its logs were read last, what is left now is not known"
        if partition.records_left < 0:
            return f"{format_count(partition.lag_offsets, 'offset')} left"
        size = f", {format_size(partition.lag_bytes)}" if partition.lag_bytes >= 0 else ""
        given = " with read_uncommitted" if self.type == GroupType.SPARK else _WITH_UNCOMMITTED
        how = given if partition.reads_uncommitted else ""
        oldest = partition.next_append_ms if partition.next_append_ms >= 0 else partition.next_timestamp_ms
        since = f", the next from {self._dated(oldest)}" if oldest >= 0 else ""
        return f"{format_count(partition.records_left, 'record')} left{how}{size}{since}"

    def _dated(self, at_ms: int) -> str:
        """The time of a record, of which a producer's clock may be ahead."""
        ahead_ms = at_ms - self.times.now_ms
        return self.times.with_note(at_ms, f"{format_duration(ahead_ms / 1000)} ahead") if ahead_ms > 0 else self.times.at(at_ms)

    def _since(self, at_ms: int) -> str:
        """Since when something is so, "" if that is not known. A time as of which is judged may be before that."""
        if at_ms < 0:
            return ""
        later = at_ms > self.times.now_ms
        return f" since {self.times.with_note(at_ms, 'after the time asked for') if later else self.times.at(at_ms)}"

    def _at(self, at_ms: int) -> str:
        """When something was, "" if that is not known."""
        return f" at {self.times.at(at_ms)}" if at_ms >= 0 else ""

    def _ends(self, transaction: HoldingTransaction | PendingOffset) -> str:
        """When its coordinator ends a transaction, "" if that is not known."""
        if transaction.deadline_ms < 0:
            return ""
        at = self.times.at(transaction.deadline_ms)
        if transaction.deadline_ms < self.times.now_ms:
            return f". Its timeout has passed at {at}"
        return f". Its coordinator ends it at {at} if its producer does not"


def _deleted(records: int, offsets: int) -> tuple[str, int]:
    """How many records, and their number; where only offsets are known, theirs."""
    number = records if records >= 0 else offsets
    return f"{'' if records >= 0 else 'up to '}{format_count(number, 'record')}", number


def deleted_by_client(partition: GroupPartition) -> bool:
    """Whether the log starts inside the segment of the next record, where retention starts no log."""
    return 0 <= partition.next_segment < partition.log_start <= partition.next_offset


def _lost_lately(partition: GroupPartition) -> str:
    """How many records: what was lost while no job watched is in no number. An offset whose record was not counted may have had none."""
    records, offsets = partition.lost_lately_records, partition.lost_lately_offsets
    more = f"up to {format_count(offsets, 'record')}" if not records else f"up to {offsets:,} more"
    what = " and ".join([f"at least {format_count(records, 'record')}"] * (records > 0) + [more] * (offsets > 0))
    return f"{what} {'was' if records + offsets == 1 else 'were'}"


def _came_late(partition: GroupPartition) -> str:
    """That the next record had no time to be read, and what gives the next ones some."""
    if partition.next_expired_ms < 0 or partition.loss_by_size:
        return ""
    age = format_duration(partition.next_expired_ms / 1000)
    return (
        f". The next one was {age} old when it was written, longer than its topic keeps records: "
        "with message.timestamp.type=LogAppendTime their time begins when they are written"
    )


def _named(transactional_id: str) -> str:
    return f" (transactional id {format_name(transactional_id)})" if transactional_id else ""


def _made(batch: BatchCheck) -> str:
    """How and by whom a batch was written."""
    producer = f"producer {batch.producer_id}" if batch.producer_id >= 0 else "no producer id"
    old = f", message format {batch.format}" if 0 <= batch.format < CURRENT_MAGIC else ""
    return f"{'not compressed' if batch.codec == 'none' else batch.codec}{old}, {producer}"
