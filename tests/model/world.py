"""Brokers, their agents and the jobs, with everything that can happen to them; and what must be true of it all.

What is on a disk is counted once, whatever happens to agents and jobs. What the model does not demand, because no disk tells it:

- What comes and is cut off or cleaned between two looks of an agent is counted, reported as skipped, or neither: an interval. The same for
  what an agent has read that ended before a job had it. What is deleted between two looks of one agent is counted or skipped: exactly, or
  by the mean size of an offset, which is at least that of the smallest one; less where nothing of the log was read, and nothing is left:
  then no size is known.
- A log that leaves a broker and comes back before its agent has looked again is not played. When it is back, its share of the topic is
  right to within a range: what had counted before is cut off a range by its offsets.
- The log dir with a broker's metadata log is never away.
- A job that begins at ``active`` or ``latest`` begins no later than where the agent has read up to for others, or has to read again.
- Of jobs that begin at an agent in the same look, one may begin where a later one does, if that is further back.
- What is overwritten in lower leader epochs, by an unclean election, between what a job has counted and where it begins again, is counted
  in part: a job knows the last epoch of what it has, and not where that began.
- Where a job begins in a file that is deleted already, it is not known which transactions are open.
- A coordinator's log is cleaned of what a later entry replaces, and not of what says that an id has expired. Kafka takes that too after a
  day, and who has not read it by then keeps an id that ended nothing.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from streaming.broker.agent.jobs import OWNED_SECONDS
from streaming.broker.protocol.consumer_messages import PlanRequest, Range, Register
from streaming.broker.protocol.known_ends import pack
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.watcher import RESCAN_MS
from streaming.common.log_key import LogKey
from streaming.common.log_positions import KnownEnd
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
ROUNDS = 24
TOPICS = {("orders", 0): [1, 2, 3], ("bills", 0): [2, 1], ("carts", 0): [3, 2], (coordinators.TOPIC, 0): [2, 3, 1]}
SECOND = 4
"""The number of an agent that watches log dirs that another one watches, too; it is started late."""


class BrokersAndJobs:
    """Three brokers, their agents and the jobs that read them, below one directory."""

    def __init__(self, root: Path) -> None:
        self.oracle = Oracle()
        self.cluster = Cluster(root, self.oracle)
        self.agents = {number: self._agent(number, number) for number in self.cluster.brokers}
        self.agents[SECOND] = self._agent(SECOND, 1, up=False)
        self.jobs: dict[str, Job] = {}
        self._root = root
        self._epochs: dict[int, int] = {}
        self._entries = 0  # that coordinators have written
        self._names = 0
        for (topic, number), on in TOPICS.items():
            self.create(topic, number, on)
        self.begin_job("first", "earliest")

    def _agent(self, number: int, broker: int, *, up: bool = True) -> Agent:
        return Agent(number, broker, self._log_dirs(broker), Clock(NOW), self._began, up=up)

    def _log_dirs(self, broker: int) -> list[Path]:
        return [disk.directory.path for disk in self.cluster.brokers[broker].disks]

    def agents_of(self, broker: int) -> list[Agent]:
        """Those that are up."""
        return [agent for agent in self.agents.values() if agent.up and agent.broker == broker]

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
        if leaves == partition.leader or not comes or away or not self.cluster.brokers[comes].whole:
            return
        self.cluster.reassign(partition, leaves, comes)
        self._all_look()

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

    # --- what happens to agents

    def look(self, number: int, *, hinted: bool) -> None:
        """The agent looks at everything there is."""
        agent = self.agents[number]
        if agent.up:
            agent.clock.now += 1_000 if hinted else RESCAN_MS
            try:
                agent.look(self._everything(agent.broker) if hinted else None)
            except Killed:
                self._restarted(agent)
            else:
                if not agent.is_full():  # else there may be more
                    self.oracle.looked(agent.broker, self._on_disk(agent.broker), self._served(agent))

    def look_held_up(self, broker: int, at: int, meanwhile: Callable[[], None], *, hinted: bool) -> None:
        """An agent looks at everything, and stands still at one of its calls: what happens then it may have seen or not."""
        for agent in self.agents_of(broker)[:1]:
            if agent.asked():
                return
            agent.clock.now += 1_000 if hinted else RESCAN_MS
            try:
                with agent.held_up(at, meanwhile):
                    agent.look(self._everything(broker) if hinted else None)
            except Killed:
                self._restarted(agent)

    def turn(self, number: int, budget: int) -> None:
        """The agent looks for a moment."""
        agent = self.agents[number]
        if agent.up:
            agent.clock.now += 200
            try:
                agent.turn(self._everything(agent.broker), budget)
            except Killed:
                self._restarted(agent)

    def light_fuse(self, number: int, publications: int, *, before: bool, leads_to: str) -> None:
        """The agent will be killed, or get another watcher, at one of its next publications."""
        fuse = self.agents[number].fuse
        fuse.left, fuse.before, fuse.leads_to = publications, before, leads_to

    def stop(self, number: int, *, killed: bool) -> None:
        self.agents[number].stop(killed=killed)
        self._lost(self.agents[number].broker)

    def start(self, number: int) -> None:
        if not self.agents[number].up:
            self.agents[number].start()

    def restart(self, number: int) -> None:
        if self.agents[number].up:
            self.stop(number, killed=True)
            self.start(number)

    def be_away(self, meanwhile: Callable[[], None]) -> None:
        """Jobs get what agents find now, and these end before something happens."""
        for number in self.agents:
            self.look(number, hinted=True)
        for job in self.jobs.values():
            self._step(job)
        up = [number for number, agent in self.agents.items() if agent.up]
        for number in up:
            self.stop(number, killed=True)
        meanwhile()
        for number in up:
            self.start(number)

    def replace_watcher(self, number: int) -> None:
        """In its process, as if it had stood still in a disk."""
        if self.agents[number].up:
            self.agents[number].replace_watcher()

    def set_clock(self, number: int, by_ms: int) -> None:
        self.agents[number].clock.now += by_ms

    def drop(self, number: int) -> None:
        """Everything that is published is dropped."""
        if self.agents[number].up:
            self.agents[number].journal.clear()
            self._lost(self.agents[number].broker)

    def resize(self, number: int, most_bytes: int) -> None:
        """The agent is started anew with a ring of another size."""
        agent = self.agents[number]
        self.stop(number, killed=True)
        agent.most_bytes = most_bytes
        agent.start()

    def rename(self, number: int) -> None:
        """The agent is started anew under a name that none had before. Jobs whose connections live on may not notice."""
        agent = self.agents[number]
        self.stop(number, killed=True)
        self._names += 1
        agent.name = f"agent {number}, name {self._names}"
        agent.start()

    def exchange(self, one: int, other: int) -> None:
        """Two agents get each other's log dirs, with new processes."""
        first, second = self.agents[one], self.agents[other]
        if first.broker == second.broker or not all(broker.whole for broker in self.cluster.brokers.values()):
            return
        ups = [(agent, agent.up) for agent in (first, second)]
        self.stop(one, killed=True)
        self.stop(other, killed=True)
        brokers = first.broker, second.broker
        second.watch(brokers[0], self._log_dirs(brokers[0]))
        first.watch(brokers[1], self._log_dirs(brokers[1]))
        for agent, up in ups:
            if up:
                agent.start()

    def confuse(self, number: int, name: str, *, times: int, seq: int) -> None:
        """Messages of others, and of another run of the job: of another token, another run, another journal.

        Nothing comes of those of another token. Another run with the job's token lets it begin anew.

        Args:
            times: how often each comes.
            seq: what they say of where they are, from the end of the journal on.
        """
        agent = self.agents[number]
        if not agent.up or name not in self.jobs:
            return
        agent.fuse.put_out()
        run, end = self.jobs[name].run, max(0, agent.journal.end().seq + seq)
        journals = {agent.journal.id, agent.jobs.journal(PRINCIPAL, name), f"{agent.journal.id}.0", ""}
        before = agent.jobs.place(PRINCIPAL, name, run)
        far = {log: KnownEnd(EVER, 0) for log in self.cluster.logs(agent.broker, away=True)}
        for _ in range(times):
            for consumer in ("stranger", name):
                agent.service.register(Register(consumer, "latest", resumed=bool(seq), run=run, positions=pack(far)), "strangers")
                for journal in journals:
                    self._send(agent, Range(consumer, run, journal, end, end + 5), "strangers")
        assert agent.jobs.place(PRINCIPAL, name, run) == before, "a stranger has changed what is known of a job"
        if seq:
            self._send(agent, Range(name, "another run", "another", end, end + 5), PRINCIPAL)
            self.oracle.lost(name, agent.broker)
        agent.jobs_clock.now += 2 * OWNED_SECONDS  # the other run is silent for so long

    def _send(self, agent: Agent, asked: Range, principal: str) -> None:
        with suppress(AgentError):
            agent.service.plan(PlanRequest(asked.consumer, asked.run, asked.journal, asked.after, None, 0), principal)
        with suppress(AgentError):
            deque(agent.service.read(asked, principal), maxlen=0)

    def _restarted(self, agent: Agent) -> None:
        self.stop(agent.number, killed=True)
        agent.start()

    def _lost(self, broker: int) -> None:
        for job in self.jobs:
            self.oracle.lost(job, broker)

    def _everything(self, broker: int) -> set[Path]:
        roots = [disk.directory.path for disk in self.cluster.brokers[broker].disks if disk.away != "gone"]
        return {*roots, *(path for root in roots for path in root.iterdir() if path.is_dir())}

    def _on_disk(self, broker: int) -> dict[LogKey, tuple[int, list[Written]]]:
        logs = self.cluster.logs(broker)
        return {log: (replica.log.segments[0].base_offset, replica.written()) for log, replica in logs.items()}

    def _all_look(self) -> None:
        """Every agent looks at everything, and every job gets everything."""
        for number, agent in self.agents.items():
            agent.fuse.put_out()
            if not self.agents_of(agent.broker):
                self.start(number)
        for _ in range(ROUNDS):
            self._drain()
            for number in self.agents:
                self.look(number, hinted=False)
            self._drain()
            up = [agent for agent in self.agents.values() if agent.up]
            if all(self._served(agent) == set(self.jobs) and not agent.is_full() for agent in up):
                return
        raise AssertionError("some job never begins, or some agent never gets to the end")

    # --- beginnings

    def _served(self, agent: Agent) -> set[str]:
        """The jobs that get what the agent publishes."""
        return {name for name, job in self.jobs.items() if agent.has_begun(name, job.run)}

    def _began(self, agent: Agent, beginning: Beginning) -> None:
        """A run of a job begins at an agent now."""
        job, logs = self.jobs[beginning.job.partition("\t")[2]], {}
        places = {cursor.log: cursor.next_offset for cursor in agent.journal.cursors()}
        for log, replica in self.cluster.logs(agent.broker, away=True).items():
            starts = {
                "earliest": replica.log.segments[0].base_offset,
                "active": replica.log.active.base_offset,
                "latest": replica.log.log_end_offset,
            }
            start_from = "earliest" if beginning.resumed or log.topic == coordinators.TOPIC else beginning.start_from
            # never ahead of what the agent has not read yet: other jobs want that, of a log that is new to it all
            unread = places.get(log, starts["earliest"] if places else EVER)
            logs[log] = min(starts[start_from], unread), replica.written()
        away = logs.keys() - self.cluster.logs(agent.broker).keys()
        others = [each for each in agent.asked() if each is not beginning]
        counted = {key for key, state in job.logs().items() if not state.departed}
        twice = any(job.name in self._served(each) for each in self.agents_of(agent.broker) if each is not agent)
        self.oracle.began(job.name, agent.broker, logs, earlier=logs.keys() if others else away, counted=counted, twice=twice)

    # --- what happens to jobs

    def begin_job(self, name: str, start_from: str) -> None:
        """A job is started; it begins at each agent when that agent has heard of it and looks."""
        if name in self.jobs:
            return
        self.oracle.met(name)
        wires = {number: Wire(agent) for number, agent in self.agents.items()}
        self.jobs[name] = Job(name, start_from, wires, self._root / f"counted-{name}")
        self._drain()

    def step(self, name: str, fails: dict[int, str], budget: int | None, crash_after: str) -> None:
        """One trigger, in which calls to some agents do not come through, and which may end with a crash."""
        job = self.jobs.get(name)
        if job is None:
            return
        for number, call in fails.items():
            job.wires[number].fails = {call}
        job.budget, job.crash_after = budget, crash_after
        self._step(job)
        for wire in job.wires.values():
            wire.fails = set()
        job.budget, job.crash_after = None, ""

    def crash(self, name: str) -> None:
        if name in self.jobs:
            self._start_anew(self.jobs[name])

    def _start_anew(self, job: Job) -> None:
        job.start()
        for broker in self.cluster.brokers:
            self.oracle.lost(job.name, broker)

    def save_checkpoint(self, name: str) -> None:
        """Copy it, once the job has begun everywhere."""
        job = self.jobs.get(name)
        if job is None or not all(self._has_beginning(job, broker) for broker in self.cluster.brokers):
            return
        job.save()
        self.oracle.save(name)

    def restore_checkpoint(self, name: str) -> None:
        """The copy comes back: nothing is lost that still lies on the disks."""
        job = self.jobs.get(name)
        if job is None or not all(broker.whole for broker in self.cluster.brokers.values()) or not job.restore():
            return
        self.oracle.restore(name)

    def _has_beginning(self, job: Job, broker: int) -> bool:
        return self.oracle.has_begun(job.name, broker) and any(key.broker == broker for key in job.logs())

    def _step(self, job: Job) -> bool:
        up = [agent for agent in self.agents.values() if agent.up]
        states = job.states
        try:
            return job.step()
        except Crashed:
            self._start_anew(job)
            return True
        finally:
            for agent in up:
                if not agent.up:
                    self._restarted(agent)
            if job.states is not states:
                self._check_ceilings(job)

    def _drain(self) -> None:
        """Every job gets all that the agents that are up have published."""
        for job in self.jobs.values():
            idle = steps = 0
            while not (idle and job.everywhere) and idle < 2:  # the first may have told that an agent knows nothing of the run any more
                idle = 0 if self._step(job) else idle + 1
                steps += 1
                assert steps < ROUNDS, f"{job.name} never gets to the end"
            for broker in self.cluster.brokers:
                agents = self.agents_of(broker)
                if agents and all(agent.has_begun(job.name, job.run) for agent in agents):
                    for account in self.oracle.of(job.name, broker).values():
                        account.delivered()

    # --- what must be true

    def settle(self) -> None:
        """Everybody looks at everything and every job gets everything; then the numbers are compared."""
        self._all_look()
        self._all_look()  # what is said again behind a loss
        for job in self.jobs.values():
            self._check(job)

    def _check(self, job: Job) -> None:
        states = {key: state for key, state in job.logs().items() if key.topic != METADATA_TOPIC}
        there = {key: state for key, state in states.items() if key.topic and not state.departed}
        accounts = self.oracle.accounts[job.name]
        other = {log for log in set(there) ^ set(accounts) if self.cluster.brokers[log.broker].whole}
        assert not other, f"{job.name}: shown and not there, or there and not shown: {other}"
        for log, account in [(log, account) for log, account in accounts.items() if log in self.cluster.logs(log.broker)]:
            self._check_log(job, log, account, there[log])
        for log, account in self.oracle.departed[job.name].items():
            if log in states or self.oracle.least(log, account).bytes:  # else it left before anybody knew of it
                self._check_departed(job, log, account, states[log])

    def _check_log(self, job: Job, log: LogKey, account: Account, state: LogState) -> None:
        name = f"{job.name}: {log} on broker {log.broker}"
        counted = _counted(state)
        grown, skipped = counted.sums - account.before.sums, counted.skipped - account.before.skipped
        least, most = self.oracle.least(log, account), self.oracle.most(log, account)
        deficit = max(0, least.bytes + self.oracle.owed_bytes(log, account) - grown.bytes - skipped)
        assert skipped >= 0, f"{name}: fewer bytes are skipped than were"
        assert grown.within(least, most), f"{name}: counted {grown}, of {least} to {most}"
        assert deficit == 0, f"{name}: {deficit} bytes are in neither"
        assert skipped == 0 or account.hole or account.blurred, f"{name}: {skipped} bytes are skipped though all were there"
        replica = self.cluster.logs(log.broker)[log]
        assert state.log_end_offset == _end(replica), f"{name}: ends at {state.log_end_offset}, not {_end(replica)}"
        opened = {(int(each["producer_id"]), int(each["first_offset"])) for each in open_ones(_transactions(state))}
        assert account.blind or opened == set(facts_of(replica.log).open_transactions), f"{name}: other transactions are open"
        if log.topic == coordinators.TOPIC:
            assert state.coordinator_upto >= state.log_end_offset, f"{name}: its entries are known up to {state.coordinator_upto} alone"
            there, here = coordinators.known(state), coordinators.on_disk(replica.log)
            assert there == here, f"{name}: it has the entries {there}, not {here}"
        account.settled(counted)

    def _check_departed(self, job: Job, log: LogKey, account: Account, state: LogState) -> None:
        assert state.departed
        grown = _counted(state).sums.shared - account.before.sums.shared
        least, most = self.oracle.least(log, account).shared, self.oracle.most(log, account).shared
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
