"""Whether a broker may be restarted: what goes offline, is refused or lost while it is away, what that costs, and what is not known.

While a broker is away its partitions are led by another replica that is in sync, or else eligible (KIP-966). The controller takes the first
one in the order of the replicas (`PartitionChangeBuilder.electLeader`). So a partition goes offline if there is no other, producers with
acks=all are refused if too few are left in sync, and what the next leader lacks is lost: records acknowledged with acks=0 or 1, which a
follower would have copied a moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

import streaming
from streaming.broker.protocol.restart_json import MOST_NAMED, REASONS, SAFE, UNKNOWN, UNSAFE, RestartFact, RestartPage, RestartRow
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.cluster_problems import quiet_metadata
from streaming.cluster.view.broker_status import newest, reassignments, topic_partitions, unwatched_log_dirs
from streaming.cluster.view.decisions import NOWHERE
from streaming.cluster.view.exported import Observed
from streaming.cluster.view.observer import watched_by
from streaming.cluster.view.transaction_columns import entries
from streaming.common.arrays import Flags, Longs
from streaming.common.catalog import EPOCHS
from streaming.common.units import format_be, format_count, format_duration, format_list, format_name, format_size
from streaming.errors import MissingError, UsageError, quoted
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.formats.names import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC, coordinator_partition
from streaming.rules.broker_process import LOCKS_NOT_SEEN, ProcessState
from streaming.rules.coordinator_state import ONGOING, count_states
from streaming.rules.copying import bytes_behind
from streaming.rules.limits import LimitsOf, effective_min_isr
from streaming.rules.restart_cost import reading_seconds

STANDS_MS = 10_000
"""A follower in sync copies within a moment. Records that it lacks for so long stand: it may hang (`replica.lag.time.max.ms` is 30 s)."""

HANGS_MS = 5_000
"""The copy of the metadata log of a broker that serves grows twice a second, and is looked at at least every three seconds."""

QUIET_MS = 10_000
"""An active controller writes to the metadata log twice a second; a job looks every three seconds."""

_NAMED = 5


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what follows from the fields is computed once
class RestartCheck:
    """What is found for all brokers at once.

    Args:
        limits_of: returns the limits of a topic on a broker.
        before: the ends of leaders a moment ago, by topic and partition: what a follower does not have of that stands.
        accepted: codes of reasons that are costs for the caller.
    """

    circumstances: Circumstances
    limits_of: LimitsOf
    before: Mapping[tuple[str, int], int] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()

    @cached_property
    def alive(self) -> frozenset[int]:
        """The brokers that serve. One that hangs does not, though the controller fences it only after `broker.session.timeout.ms`."""
        return self._unfenced - self.circumstances.not_writing - self._hanging

    @cached_property
    def _hanging(self) -> frozenset[int]:
        """The nodes whose copy of the metadata log does not grow while others do."""
        appended_ms = self.circumstances.appended_ms
        newest_ms = max(appended_ms.values(), default=-1)
        return frozenset(node for node, at in appended_ms.items() if newest_ms - at > HANGS_MS)

    @cached_property
    def _perhaps_ended(self) -> list[int]:
        """Brokers that nothing shows to serve: no process holds their locks, and they wrote a moment ago."""
        return sorted(filter(self._is_released, self.alive))

    def _is_released(self, broker: int) -> bool:
        """Whether no process holds the locks of a broker, of which more is not known yet."""
        process = self.circumstances.processes.get(broker)
        return process is not None and process.state == ProcessState.UNKNOWN and process.why != LOCKS_NOT_SEEN and bool(process.free)

    @cached_property
    def _unfenced(self) -> frozenset[int]:
        """Those that the controller takes for alive, so that it may elect them."""
        of = self.circumstances
        return frozenset(each.broker for each in of.phases.values() if each.phase is Phase.RUNNING) - of.idle

    @cached_property
    def _latest(self) -> BrokerStatus | None:
        return newest(self.circumstances.brokers)

    @property
    def controller(self) -> int:
        """The active controller, -1 if it is not known."""
        return -1 if self._latest is None else self._latest.controller

    @property
    def brokers(self) -> list[int]:
        """All that are registered."""
        return sorted(self.circumstances.phases)

    @property
    def _observed(self) -> Observed:
        return self.circumstances.view.observed

    @cached_property
    def _rows(self) -> Longs:
        """The log that shows the replicas of each partition where these are known. The quorum's is not one: its voters are no ISR."""
        rows = self._observed.assigned
        known = rows[rows != NOWHERE]
        data = np.array([self._observed.names[row] != METADATA_TOPIC for row in known.tolist()], np.bool_)
        found: Longs = known[data]
        return found

    @cached_property
    def _leader(self) -> Longs:
        return self._observed.roles.leader[self._rows]

    def _pairs(self, brokers_of: Callable[[Longs], tuple[Longs, Longs]]) -> _Pairs:
        places, brokers = brokers_of(self._rows)
        return _Pairs(place=places, broker=brokers)

    @cached_property
    def _assigned(self) -> _Pairs:
        return self._pairs(self._observed.decided.brokers_assigned)

    @cached_property
    def _in_sync(self) -> _Pairs:
        return self._pairs(self._observed.decided.brokers_in_sync)

    def _serving(self, pairs: _Pairs) -> _Pairs:
        return pairs.where(np.isin(pairs.broker, [*self.alive]))

    @cached_property
    def _may_lead(self) -> _Pairs:
        """The replicas that may lead and have lost nothing: those in sync, then the eligible ones."""
        eligible = self._pairs(self._observed.decided.brokers_eligible)
        places, brokers = (np.concatenate([getattr(each, name) for each in (self._in_sync, eligible)]) for name in ("place", "broker"))
        return _Pairs(place=places, broker=brokers)

    @cached_property
    def _all_replicas(self) -> Longs:
        """How many replicas each partition has."""
        found: Longs = self._observed.decided.all_replicas[self._rows]
        return found

    @cached_property
    def _electable(self) -> tuple[_Pairs, Longs]:
        """The replicas that serve and may lead, and how many each partition has."""
        electable = self._serving(self._may_lead)
        return electable, np.bincount(electable.place, minlength=len(self._rows))

    @cached_property
    def _goes_offline(self) -> _Pairs:
        electable, count = self._electable
        return electable.where((count[electable.place] == 1) & (self._leader[electable.place] >= 0))

    @cached_property
    def _min_isr(self) -> tuple[Longs, Flags]:
        """How many replicas of each partition have to be in sync, and whether that is known."""
        columns, decided = self._observed.columns, self._observed.decided
        brokers = np.where(self._leader >= 0, self._leader, columns["broker"][self._rows])
        owners, first, kind = np.unique(brokers << 32 | columns["topic"][self._rows], return_index=True, return_inverse=True)
        limits = [
            self.limits_of(int(owner) >> 32, self._observed.names[row], decided.text(row))
            for owner, row in zip(owners, self._rows[first].tolist(), strict=True)
        ]
        least = np.array([each.min_insync_replicas for each in limits], np.int64)[kind]
        known = np.array([each.min_insync_known for each in limits], np.bool_)[kind]
        version = decided.leader_metadata_version[self._rows]
        return effective_min_isr(least, self._all_replicas, version), known

    @cached_property
    def _refused(self) -> tuple[_Pairs, _Pairs]:
        """Partitions that fall or stay under min ISR without a broker, and those of which that is not known."""
        least, known = self._min_isr
        serving = self._serving(self._in_sync)
        left = np.maximum(np.bincount(serving.place, minlength=len(self._rows)) - 1, 1)  # an eligible one that is elected is in sync alone
        goes_on = (self._electable[1][serving.place] > 1) & (self._leader[serving.place] >= 0)
        under = left < least
        unsure = ~known & ~under & (left < self._all_replicas)
        return serving.where(goes_on & under[serving.place]), serving.where(goes_on & unsure[serving.place])

    @cached_property
    def _logs(self) -> tuple[Longs, Longs]:
        """The keys of all observed logs that can be read, sorted, and their items; of two logs with one key the longer one is the last."""
        columns = self._observed.columns
        items = np.flatnonzero(~self._observed.unreadable)
        keys = columns["replicas_of"][items] << 32 | columns["broker"][items]
        order = np.lexsort((columns["log_end_offset"][items], keys))
        return keys[order], items[order]

    def _logs_of(self, pairs: _Pairs) -> Longs:
        """The item of the log of each pair, -1 if it is not observed, or not as it is now."""
        keys, items = self._logs
        wanted = self._observed.columns["replicas_of"][self._rows[pairs.place]] << 32 | pairs.broker
        if not len(keys):
            return np.full(len(wanted), -1, np.int64)
        last = np.searchsorted(keys, wanted, side="right") - 1
        found: Longs = np.where((last >= 0) & (keys[last] == wanted), items[last], -1)
        return found

    @cached_property
    def _successor(self) -> Longs:
        """The broker that leads each partition next, -1 if there is none."""
        found = np.full(len(self._rows), -1, np.int64)
        elected = self._may_lead.where(np.isin(self._may_lead.broker, [*self._unfenced])).keys
        others = self._assigned.where(np.isin(self._assigned.keys, elected) & (self._assigned.broker != self._leader[self._assigned.place]))
        in_sync = np.isin(others.keys, self._in_sync.keys)
        for some in (others.where(in_sync), others.where(~in_sync)):
            places, first = np.unique(some.place, return_index=True)
            found[places] = np.where(found[places] < 0, some.broker[first], found[places])
        return found

    @cached_property
    def _tails(self) -> _Tails:
        """What the next leader of each partition does not have yet."""
        every = np.arange(len(self._rows))
        led, following = (self._logs_of(_Pairs(place=every, broker=brokers)) for brokers in (self._leader, self._successor))
        columns = self._observed.columns
        ends, seen, newest_ms = (columns[name] for name in ("log_end_offset", "last_append_ms", "active_max_timestamp_ms"))
        late = [*self.circumstances.late]  # an end that is old lacks nothing, or too much
        seen_now = (led >= 0) & (following >= 0) & ~np.isin(self._leader, late) & ~np.isin(self._successor, late)
        offsets = np.where(seen_now, np.maximum(ends[led] - ends[following], 0), -1)
        behind_ms = np.maximum(seen[led] - seen[following], newest_ms[led] - newest_ms[following])
        quiet_ms = self.circumstances.now_ms - seen[led]
        was = np.array([self.before.get(each, -1) for each in self._partitions_of(self._rows)], np.int64) if self.before else -1
        stands = (np.maximum(behind_ms, quiet_ms) > STANDS_MS) | (ends[following] < was)
        return _Tails(offsets=offsets, stands=(offsets > 0) & stands)

    def ends(self) -> dict[tuple[str, int], int]:
        """The ends of leaders whose next leader does not have everything, for a later check."""
        places = np.flatnonzero(self._tails.offsets > 0)
        leaders = self._logs_of(_Pairs(place=places, broker=self._leader[places]))
        ends = self._observed.columns["log_end_offset"][leaders].tolist()
        return dict(zip(self._partitions_of(self._rows[places]), ends, strict=True))

    def _partitions_of(self, rows: Longs) -> Iterator[tuple[str, int]]:
        """Topic and number of the partitions of some logs."""
        numbers = self._observed.columns["partition"][rows].tolist()
        return zip((self._observed.names[row] for row in rows.tolist()), numbers, strict=True)

    def _names(self, places: Longs) -> list[str]:
        return [f"{topic}-{number}" for topic, number in sorted(self._partitions_of(self._rows[np.unique(places)]))]

    def _fact(self, code: str, places: Longs, told: str, noun: str = "partition") -> Iterator[RestartFact]:
        """Some partitions in a sentence, nothing if there are none. ``told`` has {} where it says how many; which ones follows it."""
        names = self._names(places)
        if names:
            which = format_list([format_name(each) for each in names], _NAMED)
            what = f"{told.format(format_count(len(names), noun))}: {which}"
            yield RestartFact(code=code, what=what, count=len(names), partitions=names[:MOST_NAMED])

    def row(self, broker: int) -> RestartRow:
        """Everything about one broker."""
        running = broker in self.alive
        every = [*self._reasons(broker, running=running)]
        reasons, accepted = ([each for each in every if (each.code in self.accepted) is taken] for taken in (False, True))
        doubts = list(self._doubts(broker, running=running))
        return RestartRow(
            broker=broker,
            verdict=UNSAFE if reasons else UNKNOWN if doubts else SAFE,
            running=running,
            hangs=broker in self._hanging & self._unfenced and not self._is_released(broker),
            reasons=reasons,
            costs=[*accepted, *(self._costs(broker) if running else ()), *self._deletes(broker, running=running)],
            behind=list(self._behind(broker)),
            doubts=doubts,
        )

    def verdict_of(self, broker: int) -> tuple[str, str]:
        """The verdict about one broker, and the code of the first reason, "" if there is none."""
        running = broker in self.alive
        reason = next((each for each in self._reasons(broker, running=running) if each.code not in self.accepted), None)
        if reason is not None:
            return UNSAFE, reason.code
        return SAFE if next(self._doubts(broker, running=running), None) is None else UNKNOWN, ""

    def _reasons(self, broker: int, *, running: bool) -> Iterator[RestartFact]:
        return self._reasons_not_to_restart(broker) if running else self._reasons_not_to_start(broker)

    def _reasons_not_to_restart(self, broker: int) -> Iterator[RestartFact]:
        offline, refused = self._goes_offline.of(broker), self._refused[0].of(broker)
        alone = self._all_replicas[offline] == 1
        yield from self._fact("offline", offline[~alone], "{} would be offline, as no other replica may lead")
        yield from self._fact("under_min_isr", refused, "{} would be under min ISR, and refuse producers with acks=all")
        tails, led = self._tails, self._leader == broker
        stands = np.flatnonzero(led & tails.stands)
        records = format_count(int(tails.offsets[stands].sum()), "record")
        yield from self._fact("not_replicated", stands, f"{{}} would lose up to {records} that the next leader lacks")
        yield from self._quorum_lost(broker)
        yield from self._log_dirs_lost(broker)
        yield from self._fact("single_replica", offline[alone], "{} would be offline, with a single replica")

    def _quorum_lost(self, broker: int) -> Iterator[RestartFact]:
        if quiet := quiet_metadata(self.circumstances):
            yield RestartFact(code="no_controller", what=f"no controller is active, so no broker takes over what it leads: {quiet}")
            return
        voters, up, _ = self._voters
        if broker in voters and len(up - {broker}) <= len(voters) // 2 and not self._unheard_voters(broker):
            down = len(voters) - len(up | {broker})
            others = f"it is one of {len(voters)} voters of the quorum, {down} {format_be(down)} down, and the rest is no majority"
            yield RestartFact(code="quorum", what=others if len(voters) > 1 else "it is the only controller")

    @cached_property
    def _voters(self) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """The voters of the quorum, those of them that are up, and those of which it is not known."""
        voters = frozenset() if self._latest is None else frozenset(self._latest.voters)
        controllers = self.circumstances.appended_ms.keys() - self.circumstances.phases.keys() - self._hanging
        up = voters & (self.alive | controllers)
        known = {*self.circumstances.phases, *self.circumstances.appended_ms}
        return voters, up, voters - up - known

    def _unheard_voters(self, broker: int) -> bool:
        """Whether it hangs on voters of which nothing is known whether there is a majority without a broker."""
        voters, up, unknown = self._voters
        majority = len(voters) // 2 + 1
        return len(up - {broker}) < majority <= len(up - {broker}) + len(unknown)

    def _log_dirs_lost(self, broker: int) -> Iterator[RestartFact]:
        for each in self.circumstances.log_dirs:
            if each.broker == broker and not each.up:
                what = f"log dir {format_name(each.log_dir)} cannot be read ({each.problem}): a start may do without it, or fail"
                yield RestartFact(code="log_dir", what=what)

    def _reasons_not_to_start(self, broker: int) -> Iterator[RestartFact]:
        """A replica that cuts off what no leader has, or is elected though its log has lost its end: the others then cut off theirs."""
        yield from self._log_dirs_lost(broker)
        yield from self._cuts_off(broker)
        ends, places = self._observed.columns["log_end_offset"], np.unique(self._may_lead.of(broker))
        places = places[self._leader[places] < 0]
        replicas = self._assigned.where(np.isin(self._assigned.place, places))
        logs, own = self._logs_of(replicas), self._logs_of(_Pairs(place=places, broker=np.full(len(places), broker)))
        longest = np.zeros(len(self._rows), np.int64)
        np.maximum.at(longest, replicas.place, np.where(logs >= 0, ends[logs], 0))
        lacks = longest[places] - np.where(own >= 0, ends[own], 0)
        told = f"it would lead {{}}, and lacks {format_count(int(lacks[lacks > 0].sum()), 'record')} that another replica has"
        yield from self._fact("log_is_shorter", places[lacks > 0], told)

    def _cuts_off(self, broker: int) -> Iterator[RestartFact]:
        """What a replica of an old leader has beyond the place where one was elected that lacked it."""
        led = np.flatnonzero((self._leader >= 0) & (self._leader != broker))
        leaders, own = (self._logs_of(_Pairs(place=led, broker=brokers)) for brokers in (self._leader[led], np.full(len(led), broker)))
        cut = np.zeros(len(led), np.int64)
        for place in np.flatnonzero((leaders >= 0) & (own >= 0)).tolist():
            cut[place] = self._beyond_unclean(int(leaders[place]), int(own[place]))
        told = f"it cuts off up to {format_count(int(cut.sum()), 'record')} of {{}}, which the leader lacks since an unclean election"
        yield from self._fact("cuts_off", led[cut > 0], f"{told}: first copy its directory")

    def _beyond_unclean(self, leader: int, own: int) -> int:
        """The offsets of a log that its leader lacks, because an unclean election began one of its epochs after the last one of the log."""
        ends, decided = self._observed.columns["log_end_offset"], self._observed.decided
        of_leader = np.frombuffer(decided.epochs[leader], EPOCHS)
        if not (of_leader["began_ms"] < -1).any():  # as of nearly all: this is asked of each log at each scrape
            return 0
        of_own = np.frombuffer(decided.epochs[own], EPOCHS)
        last = of_own["epoch"][of_own["start_offset"] >= 0].max(initial=-1)
        later = of_leader[of_leader["epoch"] > last]
        if last < 0 or not (later["began_ms"] < -1).any():
            return 0
        return max(0, int(ends[own] - later["start_offset"][later["start_offset"] >= 0].min(initial=ends[leader])))

    def _costs(self, broker: int) -> Iterator[RestartFact]:
        led = np.flatnonzero((self._leader == broker) & (self._successor >= 0))
        yield from self._fact("leaders", led, "another broker leads {}")
        tails = self._tails
        flight = led[(tails.offsets[led] > 0) & ~tails.stands[led]]
        records = format_count(int(tails.offsets[flight].sum()), "record")
        told = f"of {{}} up to {records} were just being copied: with acks=0 or 1 a restart may lose such ones"
        yield from self._fact("in_flight", flight, told)
        gone = np.flatnonzero((self._leader < 0) & (self._all_replicas > 0))
        told = f"{{}} {format_be(len(gone))} offline already"
        yield from self._fact("offline_already", gone, told)
        if self.controller == broker and self._voters[0] != {broker}:
            yield RestartFact(code="controller", what="it is the active controller: another one is elected")
        yield from self._coordinated(broker, led)
        yield from self._moves(broker)
        yield from self._recovery(broker)

    def _deletes(self, broker: int, *, running: bool) -> Iterator[RestartFact]:
        """What groups have not read and is due where a broker leads, or would after its start: its first check deletes it, and so does that
        of the next leader. No agent is asked how much of it is due, so it is told how much is left at most.
        """
        judged = self.circumstances.groups
        if judged is None:
            return
        found, rows, logs = judged.snapshot.found, judged.snapshot.rows, judged.snapshot.logs
        now_ms = self.circumstances.now_ms
        due = (found.loss_ms >= 0) & (found.loss_ms <= now_ms) if running else found.loss_at_start & (found.loss_start_of == broker)
        some = [(int(row), (logs.topics[logs.of_row[row]], int(rows.partition[row]))) for row in np.flatnonzero(due & ~found.assumed)]
        if running and some:
            led = {*self._partitions_of(self._rows[self._leader == broker])}
            some = [each for each in some if each[1] in led]
        if not some:
            return
        left = found.lags.left[[row for row, _ in some]]
        groups = {rows.group_names[rows.group[row]] for row, _ in some}
        names = [f"{topic}-{number}" for topic, number in sorted({partition for _, partition in some})]
        most = f"up to {format_count(int(left.sum()), 'record')}" if (left >= 0).all() else "records"
        readers = (
            f"{'group' if len(groups) == 1 else format_count(len(groups), 'group')} {format_list(sorted(map(format_name, groups)), _NAMED)}"
        )
        check = "the next check, at the latest 30 seconds after a start," if running else "its first check, 30 seconds after the start,"
        which, have = format_list([*map(format_name, names)], _NAMED), "has" if len(groups) == 1 else "have"
        what = f"{check} deletes {most} that {readers} {have} not read: {which}"
        yield RestartFact(code="unread_due", what=what, count=len(names), partitions=names[:MOST_NAMED])

    def _coordinated(self, broker: int, led: Longs) -> Iterator[RestartFact]:
        """What another broker coordinates meanwhile."""
        partitions_of = [*self._partitions_of(self._rows[led])]
        own = self._logs_of(_Pairs(place=led, broker=self._leader[led])).tolist()  # what it follows another coordinates
        logs = (item for item, (topic, _) in zip(own, partitions_of, strict=True) if item >= 0 and topic == TRANSACTION_TOPIC)
        ongoing = sum(count_states(entries(self._observed.carried[item]))[ONGOING] for item in logs)
        if ongoing:
            yield RestartFact(code="transactions", what=f"another broker coordinates {format_count(ongoing, 'open transaction')}")
        groups = self.circumstances.groups
        partitions = (topic_partitions(self._latest) or {}).get(OFFSETS_TOPIC, 0)
        if groups is not None and partitions:
            there = {number for topic, number in partitions_of if topic == OFFSETS_TOPIC}
            count = sum(coordinator_partition(name, partitions) in there for name in groups.snapshot.groups)
            if count:
                yield RestartFact(code="groups", what=f"another broker coordinates {format_count(count, 'consumer group')}")

    def _moves(self, broker: int) -> Iterator[RestartFact]:
        moving = [each for each in reassignments(self._latest) if broker in (*each.adding, *each.removing, each.leader)]
        if moving:
            names = format_list([f"{format_name(each.topic)}-{each.partition}" for each in moving], _NAMED)
            what = f"until it is back, {format_count(len(moving), 'reassignment')} cannot end: {names}"
            yield RestartFact(code="reassignments", what=what, count=len(moving))
        copied = np.flatnonzero((self._observed.columns["broker"] == broker) & (self._observed.decided.moving > 0))
        if len(copied):
            what = f"until it is back, it copies {format_count(len(copied), 'replica')} no further to another of its log dirs"
            yield RestartFact(code="copies", what=what, count=len(copied))

    def _recovery(self, broker: int) -> Iterator[RestartFact]:
        dirs = [each for each in self.circumstances.log_dirs if each.broker == broker and each.recovery_bytes >= 0]
        size = sum(each.recovery_bytes for each in dirs)
        if size:
            seconds = [reading_seconds(each.recovery_bytes, each.recovery_rate) for each in dirs if each.recovery_bytes]
            takes = f", for about {format_duration(max(seconds))}" if min(seconds) >= 0 else ""
            yield RestartFact(
                code="recovery", what=f"after a kill its start reads {format_size(size)}{takes}; after an orderly stop nothing"
            )

    def _behind(self, broker: int) -> Iterator[RestartFact]:
        here = self._assigned.where(self._assigned.broker == broker)
        behind = here.place[~np.isin(here.keys, self._in_sync.keys)]
        leaders = self._logs_of(_Pairs(place=behind, broker=self._leader[behind]))
        own = self._logs_of(_Pairs(place=behind, broker=np.full(len(behind), broker)))
        sizes = [self._bytes_behind(*logs) for logs in zip(leaders.tolist(), own.tolist(), strict=True)]
        known = [size for size in sizes if size >= 0]
        least = "" if len(known) == len(sizes) else "at least "
        size = f" ({least}{format_size(sum(known))} behind)" if sum(known) or (known and not least) else ""
        yield from self._fact("out_of_sync", behind, f"{{}} not in sync{size}", "replica")
        first = np.unique(self._assigned.place, return_index=True)[1]
        preferred = self._assigned.broker[first] == broker
        others = np.flatnonzero(preferred & (self._leader != broker) & (self._leader >= 0))
        yield from self._fact("not_preferred", others, "another broker leads {}, and this one is the preferred leader")

    def _bytes_behind(self, leader: int, own: int) -> int:
        """How many bytes the replica lacks of the leader's log, -1 if that log is not known."""
        segments = self._observed.carried[leader].segments if leader >= 0 else None
        size = int(self._observed.replica_offsets["size_bytes"][leader])
        if segments is None or size < 0:
            return -1
        ends = self._observed.columns["log_end_offset"]
        return bytes_behind(segments, size, int(ends[own]) if own >= 0 else -1, int(ends[leader]))

    def _doubts(self, broker: int, *, running: bool) -> Iterator[str]:
        circumstances = self.circumstances
        if circumstances.start is not None:
            yield "the job is still reading what is on the disks"
        clusters = {each.cluster_id for each in circumstances.up if each.cluster_id}
        if len(clusters) > 1:
            yield f"the log dirs are of {len(clusters)} clusters"
        if circumstances.stale:
            yield "no agent has answered lately"
        yield from self._unseen(broker)
        yield from self._unsure(broker) if running else self._lowered_while_away(broker)

    def _lowered_while_away(self, broker: int) -> Iterator[str]:
        """Where it would lead, by a limit that it does not know yet: what is due is reckoned by those that it knew."""
        knew = max((each.metadata_offset for each in self.circumstances.brokers if each.broker == broker), default=-1)
        places, causes = np.unique(self._may_lead.of(broker)), self.circumstances.causes
        topics = {topic for topic, _ in self._partitions_of(self._rows[places[self._leader[places] < 0]])}
        limits = [(topic, size) for topic in sorted(topics) for size in (False, True)]
        changes = [causes.lowering(topic, broker, self.circumstances.now_ms, by_size=size) for topic, size in limits]
        found = {topic for (topic, _), change in zip(limits, changes, strict=True) if change is not None and 0 <= knew <= change.offset}
        lowered = sorted(found)
        if lowered:
            names = format_list([*map(format_name, lowered)], _NAMED)
            count = format_count(len(lowered), "topic")
            yield f"what its first check deletes is not known: retention of {count} was lowered while it was away: {names}"

    def _unseen(self, broker: int) -> Iterator[str]:
        """Brokers and partitions of which nothing is seen now."""
        circumstances = self.circumstances
        newest_ms = max(circumstances.appended_ms.values(), default=-1)
        if newest_ms >= 0 and circumstances.now_ms - newest_ms > QUIET_MS and not quiet_metadata(circumstances):
            age = format_duration((circumstances.now_ms - newest_ms) / 1000)
            yield f"no metadata log has grown for {age}: there is no active controller, or these are copies"
        if newest_ms < 0 and self._lacking is not None:
            grows_not = "the metadata log does not grow while nothing changes (metadata.max.idle.interval.ms)"
            yield f"whether a controller is active, and whether a broker hangs, is not known: {grows_not}"
        if self._perhaps_ended:
            names, itself = _ids(self._perhaps_ended), broker in self._perhaps_ended
            known = f"whether broker {names} runs is not known: nobody holds the locks of its log dirs, and it wrote a moment ago"
            yield known + (f". If broker {broker} has ended, start it: what speaks against a restart holds while it runs" if itself else "")
        seen = {each.broker for each in circumstances.brokers if each.readable}
        missing = sorted((self.alive | {broker}) - seen)
        if missing:
            yield f"the log dirs of {_named(missing)} are not seen"
        partly = sorted(each for each in (self.alive | {broker}) - {*missing} if self._unwatched.get(each))
        if partly:
            yield f"some log dirs of {_named(partly)} are not seen"
        late = sorted((circumstances.not_current & self.alive) - {*missing})
        if late:
            yield f"what is known of {_named(late)} is old"
        if self._lacking is None:
            yield "no metadata log can be read"
        elif self._lacking:
            which = format_list([format_name(each) for each in self._lacking], _NAMED)
            yield f"of {format_count(len(self._lacking), 'partition')} no replica is seen: {which}"

    @cached_property
    def _unwatched(self) -> dict[int, int]:
        """How many log dirs of each broker are not seen."""
        watched = watched_by(self.circumstances.agents)
        return unwatched_log_dirs(self.circumstances.brokers, watched.directories, watched.unnamed)

    @cached_property
    def _lacking(self) -> list[str] | None:
        """The partitions of the cluster that have no replica here, None if no metadata log can be read."""
        every = topic_partitions(self._latest)
        if every is None:
            return None
        seen = {*self._partitions_of(self._rows)}
        return [f"{topic}-{number}" for topic, count in sorted(every.items()) for number in range(count) if (topic, number) not in seen]

    def _unsure(self, broker: int) -> Iterator[str]:
        unsure = self._names(self._refused[1].of(broker))
        if unsure:
            yield (
                f"min.insync.replicas of {format_count(len(unsure), 'partition')} is not known; --server-properties names the files that "
                f"have it: {format_list(unsure, _NAMED)}"
            )
        tails = self._tails
        not_seen = self._names(np.flatnonzero((self._leader == broker) & (self._successor >= 0) & (tails.offsets < 0)))
        if not_seen:
            which = format_list(not_seen, _NAMED)
            yield f"what the next leader of {format_count(len(not_seen), 'partition')} has copied is not seen: {which}"
        if self._unheard_voters(broker) and broker in self._voters[0]:
            unknown = sorted(self._voters[2])
            yield f"whether controller {_ids(unknown)} is up is not seen, and the quorum hangs on it"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Partitions, by their place among those that are known, each with a broker."""

    place: Longs
    broker: Longs

    @property
    def keys(self) -> Longs:
        """Each pair as one number."""
        return self.place << 32 | self.broker

    def where(self, some: Flags) -> _Pairs:
        return _Pairs(place=self.place[some], broker=self.broker[some])

    def of(self, broker: int) -> Longs:
        """The places that are with a broker."""
        found: Longs = self.place[self.broker == broker]
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tails:
    """How many offsets the next leader of each partition lacks, -1 if that is not known, and whether it has lacked them for long."""

    offsets: Longs
    stands: Flags


def _ids(brokers: Sequence[int]) -> str:
    return format_list([str(each) for each in brokers], _NAMED)


def _named(brokers: Sequence[int]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {_ids(brokers)}"


def restart_page(check: RestartCheck, broker: str = "", accepted: Sequence[str] = ()) -> RestartPage:
    """The answer about one broker, or about all.

    Args:
        broker: an id, "" for all.
        accepted: codes of reasons that are costs for the caller.

    Raises:
        MissingError: there is no such broker.
        UsageError: there is no such reason.
    """
    if unknown := next((each for each in accepted if each not in REASONS), None):
        raise UsageError(f"there is no reason {quoted(unknown)} to accept; there are {', '.join(REASONS)}")
    check = replace(check, accepted=frozenset(accepted))
    known = {str(each): each for each in check.brokers}
    if broker and broker not in known:
        those = f"registered are {format_list([*known], MOST_NAMED)}" if known else "no metadata log shows any"
        raise MissingError(f"there is no broker {quoted(broker)}: {those}")
    rows = [check.row(each) for each in ([known[broker]] if broker else check.brokers)]
    phases = check.circumstances.phases

    def place(broker: int) -> tuple[bool, float, int]:
        """The active controller comes last, so that it moves once; of the others the one first that has run longest."""
        return broker == check.controller, phases[broker].since or 0.0, broker

    order = sorted((row.broker for row in rows if row.running and row.verdict == SAFE), key=place)
    return RestartPage(
        at_ms=check.circumstances.now_ms,
        version=streaming.__version__,
        order=order,
        next_step="" if broker else _next(rows, order),
        rows=rows,
    )


def _next(rows: Sequence[RestartRow], order: Sequence[int]) -> str:
    """What to do now, so that all brokers are restarted, one after the other."""
    if not rows:
        return "No broker is known."
    away = [row.broker for row in rows if not row.running and not row.hangs]
    if away:
        return f"Restart none now: first start {_named(away)}."
    if order:
        after = "then wait until this check says the same of the next one" if len(rows) > 1 else "then look whether it has caught up"
        return f"Restart broker {order[0]} now, {after}."
    behind = [row.broker for row in rows if any(each.code == "out_of_sync" for each in row.behind)]
    if behind:
        return f"Restart none now: wait until {_named(behind)} {'have' if len(behind) > 1 else 'has'} caught up."
    return "Restart none now."
