"""A tail: only its own file changes it, and whatever is asked of it in whatever order, its states change as the table says."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import streaming
from streaming.broker.disk.locate import beginning, find_offset, walk_on, window
from streaming.broker.disk.opening import ThreadCalls
from streaming.broker.journal.cursor import Replays
from streaming.broker.watcher import tail as tail_module
from streaming.broker.watcher.cursors import LossColumns, Open, Relocation, cursor_at
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.tail_states import TRANSITIONS, Cause, TailState, TransitionError, step
from streaming.common.rows import Kind
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.producer_states import Producers
from tests.builders import NOW, batch, log_dir, partition
from tests.scratch import scratch
from tests.tables import each_row
from tests.watcher.tails import begun

PACKAGE = Path(streaming.__file__).parent
OWN = PACKAGE / "broker" / "watcher" / "tail.py"
SLOTS = frozenset(Tail.__slots__) | {"listed"}  # which may be what a slot holds
NOTHING_OPEN = Open(b"", Producers.none(9))
MUTATORS = frozenset(("update", "pop", "popitem", "clear", "setdefault", "reset", "take", "expire", "unwritten"))


def _stored(node: ast.AST) -> Iterator[ast.expr]:
    """The targets of an assignment, an augmented one or a deletion, each of a tuple by itself."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.NamedExpr):
        targets = [node.target]
    for target in targets:
        yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def _attribute_of_a_tail(node: ast.expr) -> bool:
    """Whether it is an attribute, or lies in one, that is called as one of a tail's, of anything but ``self``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if isinstance(node, ast.Attribute) and node.attr in SLOTS and not is_own:
            return True
        node = node.value
    return False


def changes(source: str) -> list[str]:
    """What code outside changes of a tail: its attributes, and what they hold."""
    found = []
    for node in ast.walk(ast.parse(source)):
        found += [ast.unparse(target) for target in _stored(node) if _attribute_of_a_tail(target)]
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in MUTATORS and _attribute_of_a_tail(called.value):
                found.append(ast.unparse(called))
            if isinstance(called, ast.Name) and called.id in ("setattr", "delattr"):
                found.append(ast.unparse(node))
    return found


@each_row(
    ("code", "found"),
    [
        ("tail.cursor = 1", ["tail.cursor"]),
        ("known.doubts += 1", ["known.doubts"]),
        ("tail.partition, tail.new = 1, 2", ["tail.partition", "tail.new"]),
        ("del tail.listed[3]", ["tail.listed[3]"]),
        ("self._current.tail.stamp = None", ["self._current.tail.stamp"]),
        ("tail.producers.expiration_ms = 5", ["tail.producers.expiration_ms"]),
        ("tail.producers.reset(None)", ["tail.producers.reset"]),
        ("tail.listed.update({})", ["tail.listed.update"]),
        ("setattr(tail, 'calm', True)", ["setattr(tail, 'calm', True)"]),
        ("self.file = tail.file", []),
        ("tail.close()", []),
    ],
)
def test_a_change_from_outside_is_found(code: str, found: list[str]) -> None:
    assert changes(code) == found


def test_only_a_tail_s_own_file_changes_it() -> None:
    about = [
        path for path in PACKAGE.rglob("*.py") if path != OWN and "streaming.broker.watcher.tail import" in path.read_text(encoding="utf-8")
    ]
    assert len(about) > 20
    found = {str(path.relative_to(PACKAGE)): those for path in about if (those := changes(path.read_text(encoding="utf-8")))}
    assert found == {}


def states_of(tail: Tail) -> set[TailState]:
    return {tail.directory, tail.log_dir, tail.unread_state, tail.pace}


def _look(asked: "Asked", *_: bool) -> None:
    asked.now += 1
    if asked.tail.may_be_read and asked.tail.directory is not TailState.GONE:
        asked._ask(lambda: asked.tail.is_still(asked.now, ThreadCalls()) or asked.tail.has_grown(asked.now))


def _append(asked: "Asked", *_: bool) -> None:
    if asked.tail.directory is not TailState.GONE:
        end, batches = find_offset(asked.segments, None, window()), asked._batches()
        after = asked.tail.cursor._replace(position=end.position, next_offset=end.next_offset, anchor=end.anchor)
        asked._ask(lambda: asked.tail.append(after, batches, asked.now, compacted=False))


def _set_back(asked: "Asked", *_: bool) -> None:
    loss = LossColumns(kind=Kind.TRUNCATED, opened=NOTHING_OPEN, next_offset=0, bytes=7)
    after = asked.tail.cursor._replace(position=0, next_offset=0, stopped="")
    asked._ask(lambda: asked.tail.relocate(Relocation(after, asked.segments, loss, ())))


def _then(*calls: Callable[..., object]) -> Callable[..., None]:
    """Asks a tail these, one after the other: of the tail, what the machine knows, and two flags."""

    def ask(asked: "Asked", one: bool, other: bool) -> None:
        for call in calls:
            asked._ask(lambda call=call: call(asked.tail, asked, one, other))  # type: ignore[misc]

    return ask


CALLS: dict[str, Callable[..., None]] = {
    "look": _look,
    "append": _append,
    "set back": _set_back,
    "note scan": _then(lambda tail, asked, zeros, more: tail.note_scan(zeros=zeros, more=more)),
    "reach end": _then(lambda tail, asked, *_: tail.reach_end(asked.now), lambda tail, *_: tail.settle_backlog()),
    "take turn": _then(lambda tail, asked, far_behind, small: tail.take_turn(far_behind=far_behind, small=small)),
    "wait for": _then(lambda tail, asked, epoch, _: tail.wait_for(int(epoch), asked.now)),
    "suspect": _then(lambda tail, asked, *_: tail.suspect(asked.now)),
    "move": _then(lambda tail, asked, *_: tail.relocate(Relocation(tail.cursor._replace(stopped="", skipped=0), asked.segments))),
    "send back": _then(lambda tail, asked, *_: tail.send_back(asked.first), lambda tail, *_: tail.publish_as_known()),
    "stop": _then(lambda tail, asked, failed, _: tail.stop("a flaw", 7, failed=failed)),
    "read on": _then(lambda tail, *_: tail.forgive(), lambda tail, *_: tail.read_on()),
    "relist": _then(lambda tail, asked, *_: tail.relist(asked.segments, asked.now)),
    "restart log dir": _then(lambda tail, *_: tail.lose_log_dir(barred=False)),
    "leave": _then(lambda tail, asked, found, _: tail.leave((asked.where, asked.segments) if found else None, asked.now)),
    "come back": _then(lambda tail, asked, *_: tail.come_back(asked.where)),
    "let go": lambda asked, one, other: asked._ask(asked.tail.let_go) if one and other else None,
    "break off": _then(lambda tail, asked, known, _: tail.break_off(NOTHING_OPEN if known else Open(None, None))),
    "plan replay": _then(lambda tail, asked, one, other: tail.plan_replay([*Replays][(2 * one + other) % len(Replays)])),
    "replayed": _then(lambda tail, *_: tail.replayed(NOTHING_OPEN, (NOW, NOW))),
    "want": _then(lambda tail, *_: tail.want("latest")),
    **{
        name: _then(lambda tail, *_, name=name: getattr(tail, name)())  # type: ignore[misc]
        for name in (
            *("is_sound", "know_leader", "give_up_leader", "poll_again", "close"),
            *("regain_log_dir", "satisfy", "release"),
        )
    },
}
"""What may be asked of a tail, with two flags."""


class Asked(RuleBasedStateMachine):
    """Every method of a tail, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._scratch = scratch()
        self._log = partition(log_dir(Path(self._scratch.name)), "t")
        self._log.append(batch(2), batch(1))
        self._steps: list[tuple[TailState, Cause]] = []
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(tail_module, "step", self._step)
        self.now = NOW

    def teardown(self) -> None:
        self._patch.undo()
        self.tail.close()  # one that was let go has no file to close
        self._scratch.cleanup()

    def _step(self, state: TailState, cause: Cause) -> TailState:
        after = step(state, cause)
        self._steps.append((state, cause))
        return after

    @initialize(remembered=st.booleans(), stopped=st.booleans(), held=st.booleans())
    def begin(self, remembered: bool, stopped: bool, held: bool) -> None:
        self.tail = begun(self._log, remembered=remembered, stopped=stopped, held=held)
        self.where, self.segments = self.tail.partition, self.tail.segments
        self.first = self.tail.cursor._replace(stopped="", wanted="")

    def _ask(self, method: Callable[[], object]) -> None:
        """Call a method: the states change step by step, or not at all if one of the steps is not in the table."""
        states, before = states_of(self.tail), {name: getattr(self.tail, name) for name in SLOTS}
        self._steps.clear()
        try:
            method()
        except TransitionError:
            assert {name: getattr(self.tail, name) for name in SLOTS} == before
        for state, cause in self._steps:
            assert state in states
            states = states - {state} | {TRANSITIONS[state, cause]}
        assert states_of(self.tail) == states

    def _batches(self) -> Batches:
        file = self.tail.open()
        ((_, scanned),) = walk_on(file, 0, 0, window())
        return scanned.batches

    @rule(call=st.sampled_from(sorted(CALLS)), one=st.booleans(), other=st.booleans())
    def ask(self, call: str, one: bool, other: bool) -> None:
        CALLS[call](self, one, other)

    # --- what always holds

    @invariant()
    def stops_and_is_held_as_its_cursor_says(self) -> None:
        assert (self.tail.unread_state is TailState.STOPPED) == bool(self.tail.cursor.stopped)
        assert (self.tail.unread_state is TailState.HELD) == (self.tail.cursor.held and not self.tail.cursor.stopped)

    @invariant()
    def is_calm_only_while_it_is_read(self) -> None:
        assert not self.tail.calm or (self.tail.may_be_read and not self.tail.unsure)

    @invariant()
    def knows_what_it_waits_for(self) -> None:
        if self.tail.unread_state is TailState.WAITING:
            assert self.tail.awaited is not None
            assert not self.tail.awaited.given_up
        if self.tail.unread_state is TailState.SUSPECT:
            assert self.tail.suspect_since_ms >= NOW

    @invariant()
    def holds_no_file_when_it_is_gone(self) -> None:
        assert self.tail.directory is not TailState.GONE or self.tail.file is None


def test_its_states_change_as_the_table_says_in_whatever_order_it_is_asked() -> None:
    run_state_machine_as_test(Asked, settings=settings(stateful_step_count=60))


def _stopped(tail: Tail) -> None:
    tail.stop("a flaw", 7)


def test_a_tail_that_waits_for_a_leader_is_not_calm_however_often_it_is_polled(tmp_path: Path) -> None:
    tail = begun(partition(log_dir(tmp_path), "t"))
    tail.reach_end(NOW)
    tail.wait_for(0, NOW)
    assert [tail.has_grown(NOW) for _ in range(3)] == [False] * 3
    assert not tail.calm
    tail.know_leader()
    assert not tail.has_grown(NOW)
    assert tail.calm
    tail.close()


def test_the_end_of_its_first_backlog_leaves_what_is_still_to_be_found_out(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", preallocate=True)
    log.append(batch(2))
    tail = begun(log)
    tail.reach_end(NOW)
    assert tail.note_open(Open(None, None)) is None
    tail.settle_backlog()
    assert (tail.cursor.settled, tail.cursor.replay) == (True, Replays.ALONGSIDE)


def sizes_unread(tail: Tail) -> tuple[int, int]:
    """What is unread by the last poll, and by a call of the system."""
    return tail.unread_bytes(exact=False), tail.unread_bytes(exact=True)


def test_what_is_unread_is_counted_by_the_last_poll_or_exactly_as_it_is_now(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(2), batch(1))
    tail = begun(log)
    listed = log.active.size
    log.append(batch(5))
    grown = log.active.size
    assert sizes_unread(tail) == (listed, listed)  # no file is open yet: the listing's size
    tail.has_grown(NOW)
    assert sizes_unread(tail) == (grown, grown)
    log.append(batch(3))
    assert sizes_unread(tail) == (grown, log.active.size)
    tail.cursor = tail.cursor._replace(position=listed)
    assert sizes_unread(tail) == (grown - listed, log.active.size - listed)
    tail.cursor = tail.cursor._replace(position=grown + 1)  # read on since the poll
    assert sizes_unread(tail) == (0, log.active.size - grown - 1)
    tail.close()


def test_segments_after_the_open_one_are_unread_as_listed_and_those_before_are_not(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    sizes = []
    for records in (1, 2, 3):
        log.append(batch(records))
        sizes.append(log.active.size)
        log.roll()
    tail = begun(log)
    assert sizes_unread(tail) == (sum(sizes), sum(sizes))
    tail.cursor = cursor_at(tail.cursor.log, beginning(tail.segments[1]), tail.segments, 1)
    assert sizes_unread(tail) == (sum(sizes[1:]), sum(sizes[1:]))


WAYS: dict[TailState, tuple[Callable[[Tail], object], ...]] = {
    TailState.LEAVING: (lambda tail: tail.leave(None, NOW),),
    TailState.AWAY: (lambda tail: tail.lose_log_dir(barred=False),),
    TailState.WAITING: (lambda tail: tail.wait_for(3, NOW),),
    TailState.SUSPECT: (lambda tail: tail.suspect(NOW),),
    TailState.HELD: (lambda tail: tail.want("latest"),),
    TailState.STOPPED: (_stopped,),
    TailState.LIVE: (lambda tail: tail.reach_end(NOW),),
}
"""How a tail that begins comes to these states."""

CAUSES: dict[Cause, tuple[Callable[[Tail], object], ...]] = {
    Cause.DIRECTORY_LEFT: (lambda tail: tail.leave(None, NOW),),
    Cause.DIRECTORY_BACK: (lambda tail: tail.come_back(tail.partition),),
    Cause.LET_GO: (Tail.let_go,),
    Cause.LOG_DIR_LOST: (lambda tail: tail.lose_log_dir(barred=True),),
    Cause.LOG_DIR_BACK: (Tail.regain_log_dir,),
    Cause.LEADER_UNKNOWN: (lambda tail: tail.wait_for(3, NOW),),
    Cause.LEADER_KNOWN: (Tail.know_leader, Tail.give_up_leader),
    Cause.NO_BATCH: (lambda tail: tail.suspect(NOW),),
    Cause.SOUND: (Tail.is_sound,),
    Cause.FILE_CLOSED: (Tail.close, lambda tail: tail.relocate(Relocation(tail.cursor._replace(), tail.segments))),
    Cause.HOLD: (lambda tail: tail.want("latest"), lambda tail: tail.plan_replay(Replays.FIRST)),
    Cause.RELEASE: (Tail.satisfy, Tail.release),
    Cause.STOP: (_stopped,),
    Cause.READ_ON: (Tail.read_on, lambda tail: tail.relocate(Relocation(tail.cursor._replace(stopped=""), tail.segments))),
    Cause.END_REACHED: (lambda tail: tail.reach_end(NOW),),
    Cause.FAR_BEHIND: (lambda tail: tail.take_turn(far_behind=True, small=False),),
    Cause.SENT_BACK: (Tail.publish_as_known, lambda tail: tail.send_back(tail.cursor), lambda tail: tail.leave(None, NOW)),
}
"""What is asked of a tail for each cause."""


@each_row(("state", "cause", "ask"), [(state, cause, ask) for state, cause in TRANSITIONS for ask in CAUSES[cause]])
def test_a_tail_uses_every_row_of_the_table(state: TailState, cause: Cause, ask: Callable[[Tail], object]) -> None:
    with scratch() as root:
        tail = begun(partition(log_dir(Path(root)), "t"), remembered=state is TailState.REMEMBERED)
        for way in WAYS.get(state, ()):
            way(tail)
        assert state in states_of(tail)
        ask(tail)
        assert TRANSITIONS[state, cause] in states_of(tail)
        assert state not in states_of(tail)
        tail.close()
