"""What is known of brokers before any problem is looked for: who runs, who writes, whose numbers are old."""

from streaming.broker.protocol.cluster_messages import Registered
from streaming.cluster.verdicts.circumstances import NOT_WRITING_MS, Circumstances
from streaming.cluster.view.observer import AgentStatus
from streaming.kafka.formats.metadata_records import Phase
from tests.worlds.hosts import broker, log_dir
from tests.worlds.problems import NOW_MS, agent, around, well

OLD_MS = NOW_MS - NOT_WRITING_MS - 1
NEW_MS = NOW_MS - NOT_WRITING_MS


def test_log_dirs_that_cannot_be_read_do_not_count_as_written() -> None:
    of = around(agent(well(), log_dirs=(log_dir("/d0", checkpoint_ms=OLD_MS), log_dir("/d1", up=False, checkpoint_ms=NOW_MS))))
    assert of.checkpointed_ms == {1: OLD_MS}


def test_a_broker_wrote_when_it_wrote_into_any_of_its_log_dirs() -> None:
    dirs = [log_dir("/d0", checkpoint_ms=OLD_MS), log_dir("/d1", checkpoint_ms=NOW_MS), log_dir("/d2", checkpoint_ms=OLD_MS)]
    assert around(agent(well(), log_dirs=(*dirs,))).checkpointed_ms == {1: NOW_MS}


def test_only_a_copy_of_the_metadata_log_that_is_read_shows_when_it_grew() -> None:
    statuses = (well(), broker(2, metadata_offset=-1, appended_ms=NOW_MS), broker(3, appended_ms=-1), broker(4, appended_ms=0))
    assert around(agent(*statuses)).appended_ms == {1: NOW_MS - 500, 4: 0}


def quiet(*, checkpoint_ms: int = OLD_MS, appended_ms: int = OLD_MS, live: bool = True) -> Circumstances:
    return around(agent(well(appended_ms=appended_ms), log_dirs=(log_dir(checkpoint_ms=checkpoint_ms),)), live=live)


def test_a_broker_does_not_write_if_neither_a_checkpoint_nor_metadata_is_new() -> None:
    assert (quiet().not_writing, quiet().not_current, quiet().idle) == ({1}, {1}, frozenset())
    assert quiet(appended_ms=NEW_MS).not_writing == frozenset()
    assert quiet(checkpoint_ms=NEW_MS).not_writing == frozenset()


def test_of_log_dirs_that_are_read_once_a_broker_without_a_new_checkpoint_is_idle() -> None:
    stopped, runs = quiet(live=False), quiet(checkpoint_ms=NEW_MS, live=False)
    assert (stopped.idle, stopped.not_writing, stopped.not_current) == ({1}, frozenset(), frozenset())
    assert stopped.if_idle(1) == "; if broker 1 is down, it goes on with that when it is started", "it may be a copy"
    assert (runs.idle, runs.if_idle(1)) == (frozenset(), "")


def fenced(remembered: AgentStatus | None = None) -> Circumstances:
    down = Registered(broker=2, fenced=True, epoch=5, phase=Phase.DOWN, since_ms=NOW_MS - 1000, replicas=True)
    others = () if remembered is None else (remembered,)
    return around(agent(well(registered=[down])), *others)


def test_what_an_agent_stated_before_it_fell_silent_still_shows_how_its_broker_was_stopped() -> None:
    seen = broker(2, metadata_offset=5, registered=[Registered(broker=2, fenced=True, epoch=5)])
    assert fenced().phases[2].phase is Phase.DOWN
    assert fenced(agent(seen, name="a2", up=False)).phases[2].phase is Phase.STOPPING


def test_numbers_of_brokers_are_old_if_their_agent_is_silent_reads_on_or_is_far_behind() -> None:
    def of(lag_s: float = 0.0, **values: bool) -> frozenset[int]:
        return around(agent(well(), **values), lags={"a1": (None, lag_s)}).not_current

    assert of() == frozenset()
    assert (of(up=False), of(catching_up=True), of(lag_s=100_000.0)) == ({1}, {1}, {1})
