"""What each job must have counted of each log, kept from what was done to the brokers and from when agents have looked at everything.

An `Account` is a job's view of one log since the last settlement. A batch that lay on the disk when the agent looked at everything must
be counted, or be reported as skipped: exactly once. One that came and went between two such looks may be: there the expectation is an
interval. Every settlement compares what was added since the one before, so that an interval does not blur what comes later.
"""

from collections.abc import Iterable, Set
from copy import deepcopy
from dataclasses import dataclass, field, replace

from streaming.common.log_key import LogKey
from tests.model.brokers import Written

DIVIDED = 5
"""A range of which a part has counted for the topic is divided by its offsets: so many records it may be off."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Of batches: bytes of all, batches and records of data; ``shared`` the records that a leader appended."""

    bytes: int = 0
    batches: int = 0
    records: int = 0
    shared: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.bytes + other.bytes, self.batches + other.batches, self.records + other.records, self.shared + other.shared)

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(self.bytes - other.bytes, self.batches - other.batches, self.records - other.records, self.shared - other.shared)

    def within(self, low: "Sums", high: "Sums") -> bool:
        pairs = ((self.bytes, low.bytes, high.bytes), (self.batches, low.batches, high.batches))
        more = ((self.records, low.records, high.records), (self.shared, low.shared, high.shared))
        return all(least <= value <= most for value, least, most in (*pairs, *more))


@dataclass(frozen=True, slots=True)
class Counted:
    """What a job says of a log."""

    sums: Sums
    skipped: int


@dataclass
class Account:
    """One job's expectation of one log.

    ``next`` is how far it was looked at, ``arrived`` how far of that the job has it; ``pending`` was appended and not looked at yet,
    ``seen`` is what a look found, ``sure`` what of that the job must have by now, ``maybe`` what it may have. ``begin``: where it began.
    ``hole`` says that bytes may be skipped because they were gone before a look. ``back`` is set for a log that left its broker and is
    copied to it again: the offset up to which, and the epoch in which, it had counted for its topic before it left. ``owed``: how many
    offsets were deleted before they were looked at, and after something of the log was: ``known``. ``blind``: the job began in a file that
    was deleted already, and what was open there is not known. ``lower``: what was cut off is replaced in lower leader epochs, and the job
    has not got that yet; ``blurred``: it began again meanwhile, and does not know where the log parts from what it has counted.
    """

    next: int
    arrived: int
    before: Counted = field(default_factory=lambda: Counted(Sums(), 0))
    pending: dict[tuple[int, int], Written] = field(default_factory=dict)
    seen: list[Written] = field(default_factory=list)
    sure: list[Written] = field(default_factory=list)
    maybe: list[Written] = field(default_factory=list)
    begin: int = 0
    back: tuple[int, int] | None = None
    blind: bool = False
    epoch: int = -1
    hole: bool = False
    owed: int = 0
    known: bool = False
    lower: bool = False
    blurred: bool = False

    def appended(self, written: Written) -> None:
        """It was appended to the log."""
        batches = (*self.pending.values(), *self.seen, *self.sure, *self.maybe)
        self.lower = self.lower or written.epoch < max((self.epoch, *(each.epoch for each in batches)))
        self.pending[written.name] = written

    def truncated(self, offset: int) -> None:
        """What was cut off may be copied again, and be read both times."""
        for each in [each for each in self.pending.values() if each.next_offset > offset]:
            self.maybe.append(self.pending.pop(each.name))
        self.next, self.arrived = min(self.next, offset), min(self.arrived, offset)

    def looked(self, first_offset: int, on_disk: Iterable[Written]) -> None:
        """An agent that publishes for the job has read all there is to read."""
        if first_offset > self.next:
            self.hole = True
            self.next = first_offset
        for written in on_disk:
            if written.base_offset >= self.next:
                self.seen.append(written)
                self.known = True
                self.next = written.next_offset
                before = self.pending.pop(written.name, written)
                if before != written:  # cleaned: it may have been read as it was before
                    self.maybe.append(before)
        self.maybe += self.pending.values()
        self.pending.clear()

    def delivered(self) -> None:
        """The job has all that was published."""
        self.sure += self.seen
        self.seen.clear()
        self.arrived = self.next
        self.lower = self.lower and bool(self.pending)

    def begins_again(self) -> None:
        """What is published and did not arrive may be lost: then it is read again, as far as it is still on the disk."""
        self.owed, self.known = 0, False
        self.blurred = self.blurred or self.lower
        self.blind = self.blind or self.lower
        for each in self.seen:
            if each.name in self.pending:  # cut off and copied again
                self.maybe.append(each)
            else:
                self.pending[each.name] = each
        self.seen.clear()
        self.next = self.arrived

    def deleted(self, gone: Iterable[Written]) -> None:
        """What of that was not looked at yet has to be counted, or skipped."""
        unread = [] if not self.known else [each for each in gone if each.base_offset >= self.next and self.pending.get(each.name) == each]
        self.owed += sum(each.next_offset - each.base_offset for each in unread)

    def left(self) -> None:
        """The log is gone: what was not looked at yet may still be read from a file that is open."""
        self.sure += self.seen
        self.maybe += self.pending.values()
        self.seen.clear()
        self.pending.clear()

    def settled(self, counted: Counted) -> None:
        """From here on only what is added counts."""
        self.before = counted
        self.epoch = max((self.epoch, *(each.epoch for each in (*self.sure, *self.maybe))))
        self.sure.clear()
        self.maybe.clear()
        self.hole, self.owed, self.lower, self.blurred = False, 0, False, False


class Oracle:
    """The accounts of all jobs, and which broker led each epoch of each partition. A `tests.model.brokers.Witness`."""

    def __init__(self) -> None:
        self.accounts: dict[str, dict[LogKey, Account]] = {}
        self.departed: dict[str, dict[LogKey, Account]] = {}
        self.leaders: dict[tuple[str, int, str, int], int] = {}
        self._begun: set[tuple[str, int]] = set()  # jobs and brokers of which an agent has published where they begin
        self._copies: set[str] = set()  # of jobs' checkpoints: nothing is looked at for them until a job goes on from one
        self._sparse: set[LogKey] = set()  # logs that lack offsets: cleaned, or begun anew further on
        self._smallest: dict[LogKey, float] = {}  # the least bytes that an offset of a log has
        self._ends: dict[LogKey, int] = {}
        self._cut: set[LogKey] = set()  # logs that were cut off since their agent looked at everything

    def least(self, log: LogKey, account: Account) -> Sums:
        """What the job must have counted, or skipped."""
        if account.blurred:
            return Sums()
        total = self._sums(log, account.sure)
        return replace(total, shared=0) if account.back is not None else total

    def most(self, log: LogKey, account: Account, *more: Iterable[Written]) -> Sums:
        """What it may have counted, with ``more`` batches that it may have by now."""
        batches = [*account.sure, *account.maybe, *(each for some in more for each in some)]
        total = self._sums(log, batches)
        if account.back is None:
            return total
        upto, epoch = account.back
        anew = self._sums(log, [each for each in batches if each.base_offset >= upto or each.epoch > epoch])
        return replace(total, shared=anew.shared + DIVIDED)

    def owed_bytes(self, log: LogKey, account: Account) -> int:
        """What it must have counted or skipped besides, because it was deleted."""
        return 0 if log in self._sparse or account.blurred or account.back is not None else int(account.owed * self._smallest.get(log, 0))

    def _sums(self, log: LogKey, batches: Iterable[Written]) -> Sums:
        """Of batches on one replica: a topic's counters take those of the epochs that it led."""
        total = Sums()
        for each in batches:
            led = self.leaders[log.topic, log.partition, log.topic_id, each.epoch] == log.broker
            total += Sums(each.bytes, each.batches, each.records, each.records if led else 0)
        return total

    # --- what brokers do

    def created(self, log: LogKey) -> None:
        for job, accounts in self.accounts.items():
            if (job, log.broker) not in self._begun:  # where it begins in this log is seen when it begins
                continue
            back = self.departed[job].pop(log, None)
            accounts[log] = Account(0, 0)
            if back is not None:  # what it counts for its topic goes on, the rest begins anew
                kept = self._sums(log, back.sure).shared + back.before.sums.shared
                accounts[log].before = Counted(Sums(shared=kept), back.before.skipped)
                accounts[log].maybe, accounts[log].hole = back.maybe, True
                accounts[log].back = back.arrived, max((each.epoch for each in (*back.sure, *back.maybe)), default=back.epoch)

    def appended(self, log: LogKey, written: Written) -> None:
        if written.base_offset != self._ends.get(log, written.base_offset):
            self.cleaned(log)
        self._ends[log] = written.next_offset
        of_an_offset = written.bytes / (written.next_offset - written.base_offset)
        self._smallest[log] = min(self._smallest.get(log, of_an_offset), of_an_offset)
        for accounts in self.accounts.values():
            if log in accounts:
                accounts[log].appended(written)

    def deleted(self, log: LogKey, gone: list[Written]) -> None:
        for accounts in self.accounts.values():
            if log in accounts:
                accounts[log].deleted(gone)

    def cleaned(self, log: LogKey) -> None:
        self._sparse.add(log)

    def truncated(self, log: LogKey, offset: int) -> None:
        self._ends[log] = offset
        self._cut.add(log)
        for accounts in self.accounts.values():
            if log in accounts:
                accounts[log].truncated(offset)

    def left(self, log: LogKey) -> None:
        for job, accounts in self.accounts.items():
            if log in accounts:
                self.departed[job][log] = accounts.pop(log)
                self.departed[job][log].left()

    def removed(self, log: LogKey) -> None:
        for job, accounts in self.accounts.items():
            accounts.pop(log, None)
            for each in [each for each in self.departed[job] if each.topic_id == log.topic_id]:
                del self.departed[job][each]

    # --- what agents and jobs do

    def met(self, job: str) -> None:
        """There is a new job, which no agent knows yet."""
        self.accounts[job], self.departed[job] = {}, {}

    def has_begun(self, job: str, broker: int) -> bool:
        """Whether an agent of the broker has published where the job begins."""
        return (job, broker) in self._begun

    def save(self, job: str) -> None:
        """A job's checkpoint is copied. From now on the copy has an account of its own, to which all happens that happens to logs."""
        self._copies.add(_copy(job))
        self._take(job, _copy(job))
        for account in self.accounts[_copy(job)].values():
            account.begins_again()

    def restore(self, job: str) -> None:
        """A job goes on from the copy, which stays."""
        self._take(_copy(job), job)

    def _take(self, job: str, to: str) -> None:
        self.accounts[to], self.departed[to] = deepcopy(self.accounts[job]), deepcopy(self.departed[job])
        self._begun |= {(to, broker) for name, broker in self._begun if name == job}

    def began(
        self,
        job: str,
        broker: int,
        logs: dict[LogKey, tuple[int, list[Written]]],
        *,
        earlier: Set[LogKey],
        counted: Set[LogKey],
        twice: bool,
    ) -> None:
        """A run of a job begins at one agent: of each log the offset, and what is in it. It goes on in those that it has ``counted``.

        Logs in ``earlier`` may begin before that: those that are away begin when they can be read, at the earliest that any job wants.
        ``twice``: it has begun at another agent of the broker, too, so that either beginning may be the one that it gets first.
        """
        self._begun.add((job, broker))
        accounts = self.accounts[job]
        for log, (offset, written) in logs.items():
            known = accounts.get(log)
            if known is not None and (log in counted or known.back is not None):
                known.begins_again()
                continue
            surely = offset if known is None or not twice else max(offset, known.begin)
            # what others wait for may be read from a file that is not one of the log's any more
            others = [
                each
                for name, other in self.accounts.items()
                if log in other and name not in self._copies
                for each in other[log].pending.values()
            ]
            found = {each.name: each for each in (*written, *others)}
            begun = accounts[log] = Account(surely, surely, pending={name: each for name, each in found.items() if name[0] >= surely})
            begun.begin, begun.blind = surely, bool(written) and surely < written[0].base_offset
            if log in self._cut or log in earlier or twice:  # then it may begin where the agent is set back to
                begun.maybe += [each for name, each in found.items() if name[0] < surely]
            begun.hole = twice  # at the other one
            if known is not None:  # of a beginning that the job did not get
                begun.maybe += [each for each in (*known.seen, *known.maybe, *known.pending.values()) if each.name not in found]

    def lost(self, job: str, broker: int) -> None:
        """What an agent of the broker has published may not arrive at the job any more."""
        for account in self.of(job, broker).values():
            account.begins_again()

    def looked(self, broker: int, logs: dict[LogKey, tuple[int, list[Written]]], jobs: Iterable[str]) -> None:
        self._cut -= set(logs)
        for job in jobs:
            for log, account in self.accounts.get(job, {}).items():
                if log.broker == broker and log in logs:
                    account.looked(*logs[log])

    def of(self, job: str, broker: int) -> dict[LogKey, Account]:
        return {log: account for log, account in self.accounts.get(job, {}).items() if log.broker == broker}


def _copy(job: str) -> str:
    return f"{job}, copied"
