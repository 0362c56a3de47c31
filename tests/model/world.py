"""Brokers, their agents and the jobs, with everything that can happen to them; and what must be true of it all.

What the model does not demand, because nothing on the disks tells it:

- What comes and is cut off or cleaned between two looks of an agent is counted, reported as skipped, or neither: an interval. What is
  deleted between them is counted or skipped: exactly, or by the mean size of an offset, which is at least that of the smallest one; less
  where nothing of the log was read by this journal, and nothing is left: then no size is known.
- A log that leaves a broker and comes back before its agent has looked again is not played. When it is back, its share of the topic is
  right to within a range: what had counted before is cut off a range by its offsets.
- The log dir with a broker's metadata log is never away.
- A journal is lost only after the jobs have had the agent's beginning: a job that has planned it and not read it seems to have it.
- A job that begins at ``active`` or ``latest`` begins no later than where the agent has read up to for others, or has to read again.
- Of jobs that begin at an agent in the same look, one may begin where a later one does, if that is further back.
- What a new journal has read and forgot before a job had any of it is reported as lost without a log's name. The log's end is known by its
  next append, which tells the same once more, by the mean size of an offset.
- Where a job begins in a file that is deleted already, it is not known which transactions are open.
- A coordinator's log is cleaned of what a later entry replaces, and not of what says that an id has expired. Kafka takes that too after a
  day, and who has not read it by then keeps an id that ended nothing.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.agent.service import OWNED_SECONDS
from streaming.broker.journal.consumers import JournalBounds
from streaming.broker.protocol.consumer_messages import Committed, PlanRequest, Range, Register
from streaming.broker.watcher.watcher import RESCAN_MS
from streaming.common.log_key import LogKey
from streaming.common.rows import TRANSACTIONS
from streaming.errors import AgentError
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.rules.log_state import LogState
from streaming.rules.transaction_fold import Transactions, open_ones
from tests.builders import NOW, abort, batch, commit
from tests.clocks import Clock
from tests.facts import facts_of
from tests.model import coordinators
from tests.model.agent import PRINCIPAL, Agent, Killed, Wire
from tests.model.brokers import Cluster, Partition, Replica, Written
from tests.model.job import Crashed, Job
from tests.model.oracle import Account, Counted, Oracle, Sums

EVER = 10**15
PLENTY = 1 << 30
ROUNDS = 12
TOPICS = {("orders", 0): [1, 2, 3], ("bills", 0): [2, 1], ("carts", 0): [3, 2], (coordinators.TOPIC, 0): [2, 3, 1]}


@dataclass(frozen=True, slots=True)
class AgentState:
    """What an agent's journal holds: the jobs that are registered, and up to where each log was read."""

    registered: set[str]
    places: dict[LogKey, int]


class BrokersAndJobs:
    """Three brokers, their agents and the jobs that read them, below one directory."""

    def __init__(self, root: Path) -> None:
        self.oracle = Oracle()
        self.cluster = Cluster(root, self.oracle)
        self.clocks = {number: Clock(NOW) for number in self.cluster.brokers}
        self.agents = {
            number: Agent(number, number, [disk.directory.path for disk in broker.disks], root / f"journal-{number}", self.clocks[number])
            for number, broker in self.cluster.brokers.items()
        }
        self.jobs: dict[str, Job] = {}
        self._epochs: dict[int, int] = {}
        self._entries = 0  # that coordinators have written
        self._open: dict[str, set[int]] = {}
        self._residues: dict[tuple[str, int], int] = {}
        self._names = 0
        self._at_copy: dict[str, tuple[dict[tuple[str, int], int], set[tuple[str, int]]]] = {}  # of jobs whose checkpoints are copied
        self._anew: set[int] = set()  # brokers whose journal was lost since the last settlement
        self._lossy: set[tuple[str, int]] = set()  # jobs and brokers: a part of the journal was trimmed unread
        self._unseen: set[int] = set()  # brokers: the journal is another one, and it may know nothing of a log dir that is away
        for (topic, number), on in TOPICS.items():
            self.create(topic, number, on)
        self.begin_job("first", "earliest")

    def close(self) -> None:
        for agent in self.agents.values():
            agent.stop(killed=True)
        self.cluster.close()

    # --- what brokers do

    def create(self, topic: str, number: int, on: list[int]) -> None:
        if (topic, number) not in self.cluster.partitions:
            self.cluster.create(topic, number, on)
            self._led(self.cluster.partitions[topic, number])

    def delete(self, partition: Partition) -> None:
        if not any(replica.disk.away for replica in partition.replicas.values()):
            self.cluster.delete(partition)

    def append(self, partition: Partition, records: int, batches: int) -> None:
        self.cluster.now += 1
        if partition.topic == coordinators.TOPIC:
            self._entries += batches
            entries = [coordinators.entry(number, self.cluster.now) for number in range(self._entries - batches, self._entries)]
            self.cluster.append(partition, entries)
            return
        self.cluster.append(partition, [batch(records, timestamp=self.cluster.now)] * batches)

    def transact(self, partition: Partition, producer: int, records: int) -> None:
        if partition.topic == coordinators.TOPIC:
            return
        self.cluster.now += 1
        epoch = self._epochs.setdefault(producer, 0)
        made = batch(records, producer=producer, epoch=epoch, transactional=True, timestamp=self.cluster.now)
        self.cluster.append(partition, [made])

    def end_transaction(self, partition: Partition, producer: int, *, committed: bool) -> None:
        if partition.topic == coordinators.TOPIC:
            return
        self.cluster.now += 1
        self._epochs[producer] = self._epochs.get(producer, 0) + 1
        marker = (commit if committed else abort)(producer, epoch=self._epochs[producer], timestamp=self.cluster.now)
        self.cluster.append(partition, [marker])

    def replicate(self, partition: Partition, count: int) -> None:
        for broker in partition.replicas:
            self.cluster.replicate(partition, broker, count)

    def roll(self, replica: Replica) -> None:
        if not replica.disk.away and replica.log.active.entries:
            replica.log.roll()

    def delete_segments(self, replica: Replica, count: int) -> None:
        log = replica.log
        if not replica.disk.away and log.topic != coordinators.TOPIC:  # which is compacted alone
            before = replica.written()
            log.delete_records(log.segments[min(count, len(log.segments) - 1)].base_offset)
            log.delete_old_segments(self.cluster.now)
            self.oracle.deleted(self._log_of(replica), [each for each in before if each.base_offset < log.segments[0].base_offset])
            log.unlink_deleted(self.cluster.now + count * 40_000)

    def come_and_go(self, partition: Partition, records: int, segments: int, kept: int) -> None:
        """The leader's log gets so many segments more, and all but the last ones go at once; not with what is open in them, which a log
        that moves later does not know any more.
        """
        leader = partition.replicas[partition.leader]
        if facts_of(leader.log).open_transactions:
            return
        for _ in range(segments):
            self.append(partition, records, 4)
            self.roll(leader)
        self.delete_segments(leader, max(0, len(leader.log.segments) - kept))

    def clean(self, replica: Replica, which: int, keep: int) -> None:
        """The cleaner rewrites a closed segment below the last stable offset; markers stay."""
        self.cluster.clean(replica, which, keep)
        self.oracle.cleaned(self._log_of(replica))

    def _log_of(self, replica: Replica) -> LogKey:
        (log,) = [log for broker in self.cluster.brokers for log, each in self.cluster.logs(broker, away=True).items() if each is replica]
        return log

    def elect(self, partition: Partition, broker: int) -> None:
        if not partition.replicas[broker].disk.away:
            self.cluster.elect(partition, broker)
            self._led(partition)

    def reassign(self, partition: Partition, leaves: int) -> None:
        (comes,) = set(self.cluster.brokers) - set(partition.replicas) or {0}
        away = any(replica.disk.away for replica in partition.replicas.values())
        if leaves == partition.leader or not comes or away or not self.agents[leaves].up or not self.cluster.brokers[comes].whole:
            return
        self.cluster.reassign(partition, leaves, comes)
        self._look_at([leaves, comes])
        self._drain()

    def move(self, partition: Partition, broker: int) -> None:
        self.cluster.now += 1
        self.cluster.move(partition, broker)

    def take_away(self, broker: int, how: str) -> None:
        disk = self.cluster.brokers[broker].disks[-1]
        if len(self.cluster.brokers[broker].disks) > 1 and not disk.away:
            disk.take_away(how)

    def bring_back(self) -> None:
        for broker in self.cluster.brokers.values():
            for disk in broker.disks:
                if disk.away:
                    disk.bring_back()

    def _led(self, partition: Partition) -> None:
        log = partition.log_id(partition.leader)
        self.oracle.leaders[log.topic, log.partition, log.topic_id, partition.epoch] = partition.leader

    def _look_at(self, brokers: list[int]) -> None:
        for broker in brokers:
            self.start(broker)
            self.agents[broker].fuse.left = -1
            self.look(broker, hinted=False)

    # --- what happens to agents

    def look(self, broker: int, *, hinted: bool) -> None:
        """The agent looks at everything there is."""
        agent = self.agents[broker]
        if agent.up:
            agent.clock.now += 1_000 if hinted else RESCAN_MS
            before = self._waiting(agent)
            try:
                agent.look(self._everything(broker) if hinted else None)
            except Killed:
                self._restarted(broker, before)
            else:
                self._note_beginnings(agent, before)
                self.oracle.looked(broker, self._on_disk(broker), self._registered(agent))

    def look_held_up(self, broker: int, at: int, meanwhile: Callable[[], None], *, hinted: bool) -> None:
        """The agent looks at everything, and stands still at one of its calls: what happens then it may have seen or not."""
        agent = self.agents[broker]
        if agent.up and not agent.waiting:
            agent.clock.now += 1_000 if hinted else RESCAN_MS
            before = self._waiting(agent)
            try:
                with agent.held_up(at, meanwhile):
                    agent.look(self._everything(broker) if hinted else None)
            except Killed:
                self._restarted(broker, before)

    def turn(self, broker: int, budget: int) -> None:
        """The agent looks for a moment."""
        agent = self.agents[broker]
        if agent.up:
            agent.clock.now += 200
            before = self._waiting(agent)
            try:
                agent.turn(self._everything(broker), budget)
            except Killed:
                self._restarted(broker, before)
            else:
                self._note_beginnings(agent, before)

    def light_fuse(self, broker: int, commits: int, *, before: bool) -> None:
        """The agent will be killed at one of its next writes."""
        self.agents[broker].fuse.left, self.agents[broker].fuse.before = commits, before

    def stop(self, broker: int, *, killed: bool) -> None:
        self.agents[broker].stop(killed=killed)

    def start(self, broker: int) -> None:
        if not self.agents[broker].up:
            self.agents[broker].waiting.clear()
            self.agents[broker].start()

    def set_clock(self, broker: int, by_ms: int) -> None:
        self.clocks[broker].now += by_ms

    def save_journal(self, broker: int, copy: int = 0) -> None:
        if self.agents[broker].up:
            self.agents[broker].save_journal(copy)

    def lose_journal(self, broker: int) -> None:
        if self.cluster.brokers[broker].whole:
            self._have_begun(broker)
            self.agents[broker].lose_journal()
            self._journal_lost(broker)

    def restore_journal(self, broker: int, copy: int = 0) -> None:
        if self.cluster.brokers[broker].whole:
            self._have_begun(broker)
            if self.agents[broker].restore_journal(copy):
                self._journal_lost(broker)

    def flap(self, broker: int, copies: list[int], steps: list[bool]) -> None:
        """One journal after the other, as with snapshots of a machine: each time the one that was there is kept for later.

        Args:
            copies: which one comes; one that there is not is a new journal.
            steps: whether the agent looks and jobs go on before the next one comes.
        """
        for copy, goes_on in zip(copies, steps, strict=False):
            if not self.cluster.brokers[broker].whole:
                return
            self._have_begun(broker)
            agent = self.agents[broker]
            agent.fuse.left = -1
            self.save_journal(broker, copies[0] if copy != copies[0] else 9)
            if not agent.restore_journal(copy):
                agent.lose_journal()
            self._journal_lost(broker)
            if goes_on:
                self.look(broker, hinted=True)
                for job in self.jobs.values():
                    self._step(job)

    def rename(self, broker: int) -> None:
        """The agent is started anew under a name that none had before, on its journal. Jobs whose connections live on may not notice."""
        agent = self.agents[broker]
        if self.cluster.brokers[broker].whole:
            self._have_begun(broker)
            agent.stop(killed=True)
            self._names += 1
            agent.name = f"agent {broker}, name {self._names}"
            self._journal_lost(broker)

    def confuse(self, broker: int, name: str, *, times: int, seq: int) -> None:
        """Messages of others, and late or wrong ones of a job: of another token, another run, another journal, other consumers.

        Nothing comes of those of another token. Those of an earlier run of the job, with its token, may let it begin anew: that costs it
        no more than what is not on the disk any more by then.

        Args:
            times: how often each comes.
            seq: what they say of where they are, from the end of the journal on.
        """
        agent = self.agents[broker]
        if not agent.up or name not in self.jobs:
            return
        agent.fuse.left = -1
        run, end = self.jobs[name].run, agent.journal.end().seq
        for _ in range(times):
            for consumer in ("", "stranger", name):
                for journal in {agent.journal.id, agent.consumers.journal(name), f"{agent.journal.id}.00000000", ""}:
                    self._send(agent, Range(consumer, run, journal, 0, 0, max(0, end + seq)), "stranger")
            if agent.consumers.committed(name) is not None:
                with pytest.raises(AgentError):
                    agent.service.register(Register(name, "latest", resumed=False), "stranger")
                with pytest.raises(AgentError):
                    agent.service.register(Register(name, "latest", resumed=True, run=run), "stranger")
            if seq and self._has_beginning(self.jobs[name], broker):
                # somebody who has the job's token; its own run and journal it knows from its own life alone
                for journal in ("another", f"{agent.journal.id}.00000000"):
                    self._send(agent, Range(name, "an earlier run", journal, end + seq, 5, end + 2 * abs(seq)), PRINCIPAL)
        for account in self.oracle.of(name, broker).values() if seq else ():
            account.copied()  # the job may begin anew
        agent.owners_clock.now += 2 * OWNED_SECONDS  # the earlier run is silent for so long

    def _send(self, agent: Agent, asked: Range, principal: str) -> None:
        service, (consumer, run, journal, upto) = agent.service, (asked.consumer, asked.run, asked.journal, asked.upto)
        before = self._waiting(agent)
        with suppress(AgentError):
            service.plan(PlanRequest(consumer, run, journal, asked.after, None, 0), principal)
        with suppress(AgentError):
            deque(service.read(asked, principal), maxlen=0)
        service.received(asked, principal)
        service.committed(Committed(consumer, run, journal, upto), principal)
        if principal != PRINCIPAL:
            assert self._waiting(agent) == before, "a stranger has changed what is known of a job"

    def _have_begun(self, broker: int) -> None:
        """Every job has had this agent's beginning."""
        if all(any(key.broker == broker for key in job.logs()) for job in self.jobs.values()):
            return
        self._look_at([broker])
        self._drain()
        self._look_at([broker])
        self._drain()

    def _journal_lost(self, broker: int) -> None:
        self._anew.add(broker)
        self._unseen.add(broker)
        for job in self.jobs:
            for account in self.oracle.of(job, broker).values():
                account.journal_lost()
        self.start(broker)

    def _restarted(self, broker: int, before: AgentState) -> None:
        agent = self.agents[broker]
        agent.stop(killed=True)
        agent.start()
        self._note_beginnings(agent, before)
        agent.waiting.clear()  # who is not registered by now has to register again

    def trim(self, broker: int, max_bytes: int, expiry_ms: int) -> None:
        """Forget what is beyond the bounds, also what some job has not had."""
        agent = self.agents[broker]
        if not agent.up:
            return
        agent.fuse.left = -1
        agent.trim(JournalBounds(max_bytes=max_bytes, max_age_ms=EVER, consumer_expiry_ms=expiry_ms))
        if max_bytes >= PLENTY and expiry_ms >= EVER:
            return  # only what all jobs have
        for job in self.jobs:
            self._lossy.add((job, broker))
            if broker in self._anew:  # what another journal had read and forgot is told by the mean size of an offset
                for account in self.oracle.of(job, broker).values():
                    account.lost = True

    def _everything(self, broker: int) -> set[Path]:
        roots = [disk.directory.path for disk in self.cluster.brokers[broker].disks if disk.away != "gone"]
        return {*roots, *(path for root in roots for path in root.iterdir() if path.is_dir())}

    def _on_disk(self, broker: int) -> dict[LogKey, tuple[int, list[Written]]]:
        logs = self.cluster.logs(broker)
        return {log: (replica.log.segments[0].base_offset, replica.written()) for log, replica in logs.items()}

    # --- beginnings

    def _registered(self, agent: Agent) -> set[str]:
        return {job for job in self.jobs if agent.consumers.committed(job) is not None}

    def _waiting(self, agent: Agent) -> AgentState:
        left, agent.fuse.left = agent.fuse.left, -1  # to be asked by the model kills nobody
        cursors, agent.fuse.left = agent.journal.cursors(), left
        return AgentState(self._registered(agent), {place.log: place.next_offset for place in cursors})

    def _note_beginnings(self, agent: Agent, before: AgentState) -> None:
        places = dict(before.places)
        names = [name for name in agent.waiting if name in self._registered(agent) - before.registered]
        for number, name in enumerate(names):
            agent.waiting.remove(name)
            job, logs = self.jobs[name], {}
            start_from = "earliest" if job.knows(agent) else job.start_from
            for log, replica in self.cluster.logs(agent.number, away=True).items():
                starts = {
                    "earliest": replica.log.segments[0].base_offset,
                    "active": replica.log.active.base_offset,
                    "latest": replica.log.log_end_offset,
                }
                # never ahead of what the agent has not read yet: other jobs want that, of a log that is new to it all
                unread = places.get(log, starts["earliest"] if before.registered else EVER)
                places[log] = min(starts["earliest" if log.topic == coordinators.TOPIC else start_from], unread)
                logs[log] = (places[log], replica.written())
            away = logs.keys() - self.cluster.logs(agent.number).keys()
            self.oracle.began(name, agent.number, logs, logs.keys() if names[number + 1 :] else away)

    # --- what happens to jobs

    def begin_job(self, name: str, start_from: str) -> None:
        """A job is started; it begins at each agent when that agent has heard of it and looks."""
        if name in self.jobs:
            return
        self.oracle.met(name)
        self.jobs[name] = Job(name, start_from, {number: Wire(agent) for number, agent in self.agents.items()})
        self._drain()

    def step(self, name: str, fails: dict[int, str], budget: int | None, crash_after: str) -> None:
        """One trigger, in which calls to some agents do not come through, and which may end with a crash."""
        job = self.jobs.get(name)
        if job is None:
            return
        for broker, call in fails.items():
            job.wires[broker].fails = {call}
        job.budget, job.crash_after = budget, crash_after
        self._step(job)
        for wire in job.wires.values():
            wire.fails = set()
        job.budget, job.crash_after = None, ""

    def crash(self, name: str) -> None:
        if name in self.jobs:
            self.jobs[name].start()

    def save_checkpoint(self, name: str) -> None:
        """Copy it, once the job has begun everywhere."""
        job = self.jobs.get(name)
        if job is None or not all(self._has_beginning(job, broker) for broker in self.cluster.brokers):
            return
        job.save()
        self.oracle.save(name)
        residues = {key: size for key, size in self._residues.items() if key[0] == name}
        self._at_copy[name] = residues, {key for key in self._lossy if key[0] == name}

    def restore_checkpoint(self, name: str) -> None:
        """The copy comes back: whatever the journals have forgotten since, nothing is lost that still lies on the disks, but for what a
        journal has told as skipped because the job had not read it when it was forgotten.
        """
        job = self.jobs.get(name)
        if job is None or not all(broker.whole for broker in self.cluster.brokers.values()) or not job.restore():
            return
        self.oracle.restore(name)
        residues, lossy = self._at_copy[name]
        self._residues = {key: size for key, size in self._residues.items() if key[0] != name} | residues
        self._lossy |= lossy

    def _has_beginning(self, job: Job, broker: int) -> bool:
        return self.oracle.has_begun(job.name, broker) and any(key.broker == broker for key in job.logs())

    def _step(self, job: Job) -> bool:
        before = {agent.number: self._waiting(agent) for agent in self.agents.values() if agent.up}
        states = job.states
        try:
            return job.step()
        except Crashed:
            job.start()
            return True
        finally:
            for broker, agent in self.agents.items():
                if broker in before and not agent.up:
                    self._restarted(broker, before[broker])
            if job.states is not states:
                self._check_ceilings(job)

    def _drain(self) -> None:
        """Every job gets all that the agents that are up have published."""
        for job in self.jobs.values():
            idle = steps = 0
            while not (idle and job.everywhere) and idle < 2:  # the first may have told that an agent knows nothing of the job any more
                idle = 0 if self._step(job) else idle + 1
                steps += 1
                assert steps < ROUNDS, f"{job.name} never gets to the end"
            for broker, agent in self.agents.items():
                if agent.up and agent.consumers.committed(job.name) is not None:
                    for account in self.oracle.of(job.name, broker).values():
                        account.delivered()

    # --- what must be true

    def settle(self) -> None:
        """Everybody looks at everything and every job gets everything; then the numbers are compared."""
        for broker, agent in self.agents.items():
            agent.fuse.left = -1
            self.start(broker)
        for _ in range(2):  # the beginning, and what is said again behind a loss
            self._drain()
            for broker in self.agents:
                self.look(broker, hinted=False)
        self._drain()
        self._unseen = {broker for broker in self._unseen if not self.cluster.brokers[broker].whole}
        for job in self.jobs.values():
            self._check(job)
        self._anew.clear()
        self._lossy = {(job, broker) for job, broker in self._lossy if not self.cluster.brokers[broker].whole}

    def _check(self, job: Job) -> None:
        states = {key: state for key, state in job.logs().items() if key.topic != METADATA_TOPIC}
        there = {key: state for key, state in states.items() if key.topic and not state.departed}
        accounts = self.oracle.accounts[job.name]
        other = {log for log in set(there) ^ set(accounts) if self.cluster.brokers[log.broker].whole}
        assert not other, f"{job.name}: shown and not there, or there and not shown: {other}"
        deficits = dict.fromkeys(self.agents, 0)
        for log, account in [(log, account) for log, account in accounts.items() if log in self.cluster.logs(log.broker)]:
            deficits[log.broker] += self._check_log(job, log, account, there[log])
        for log, account in self.oracle.departed[job.name].items():
            if log in states or self.oracle.least(log, account).bytes:  # else it left before anybody knew of it
                self._check_departed(job, log, account, states[log])
        for broker, deficit in deficits.items():
            residue = sum(sum(state.skipped_bytes) for key, state in states.items() if not key.topic and key.broker == broker)
            explained = self._residues.get((job.name, broker), 0)
            grown = residue - explained
            assert 0 <= deficit <= grown, f"{job.name}: {deficit} bytes of broker {broker} are in neither, {grown} were told without a log"
            # some of it may be of logs in a log dir that is away: they are compared once it is back
            self._residues[job.name, broker] = residue if self.cluster.brokers[broker].whole else explained + deficit

    def _check_log(self, job: Job, log: LogKey, account: Account, state: LogState) -> int:
        """Compare one log; returns how many bytes of it are in neither, which only a loss that names no log may explain."""
        name = f"{job.name}: {log} on broker {log.broker}"
        counted, lossy = _counted(state), (job.name, log.broker) in self._lossy or account.lost
        grown, skipped = counted.sums - account.before.sums, counted.skipped - account.before.skipped
        least, most = self.oracle.least(log, account), self.oracle.most(log, account)
        deficit = max(0, least.bytes + self.oracle.owed_bytes(log, account) - grown.bytes - skipped)
        assert skipped >= 0, f"{name}: fewer bytes are skipped than were"
        assert grown.within(Sums() if lossy or account.hole else least, most), f"{name}: counted {grown}, of {least} to {most}"
        assert deficit == 0 or lossy, f"{name}: {deficit} bytes are in neither"
        if not account.hole:
            assert grown.bytes + skipped <= most.bytes or account.lost, f"{name}: {grown.bytes} + {skipped} bytes, of {most.bytes}"
            assert skipped == 0 or lossy, f"{name}: {skipped} bytes are skipped though all were there"
        replica = self.cluster.logs(log.broker)[log]
        assert state.log_end_offset == _end(replica), f"{name}: ends at {state.log_end_offset}, not {_end(replica)}"
        opened = {(int(each["producer_id"]), int(each["first_offset"])) for each in open_ones(_transactions(state))}
        assert account.blind or opened == set(facts_of(replica.log).open_transactions), f"{name}: other transactions are open"
        if log.topic == coordinators.TOPIC:
            assert state.coordinator_upto >= state.log_end_offset, f"{name}: its entries are known up to {state.coordinator_upto} alone"
            there, here = coordinators.known(state), coordinators.on_disk(replica.log)
            assert there == here, f"{name}: it has the entries {there}, not {here}"
        account.settled(counted)
        told_by_size = skipped and log.broker in self._anew  # a range of which a part had counted: its bytes are divided by its offsets
        return 0 if told_by_size else deficit

    def _check_departed(self, job: Job, log: LogKey, account: Account, state: LogState) -> None:
        assert state.departed or log.broker in self._unseen
        grown = _counted(state).sums.shared - account.before.sums.shared
        least, most = self.oracle.least(log, account).shared, self.oracle.most(log, account).shared
        if (job.name, log.broker) in self._lossy:
            least = 0
        assert least <= grown <= most, f"{job.name}: {log} left with {grown} records, of {least} to {most}"
        account.settled(_counted(state))

    def _check_ceilings(self, job: Job) -> None:
        """At any moment: never more than was appended."""
        for key, state in job.logs().items():
            account = self.oracle.accounts[job.name].get(key)
            if account is not None and not state.departed:
                most = account.before.sums + self.oracle.most(key, account, account.seen, account.pending.values())
                sums = _counted(state).sums
                assert sums.within(Sums(), most), f"{job.name}: {key} counted {sums} of {most}"


def _counted(state: LogState) -> Counted:
    sums = Sums(state.appended_bytes, state.appended_batches, state.appended_records, state.share_records)
    return Counted(sums, sum(state.skipped_bytes))


def _transactions(state: LogState) -> Transactions:
    return np.frombuffer(state.transactions or b"", TRANSACTIONS)


def _end(replica: Replica) -> int:
    """Where a log ends as far as its files tell."""
    return max([replica.log.active.base_offset, *(each.next_offset for each in replica.written()[-1:])])
