"""Log dirs that change their agent, replicas that change their log dir: whoever publishes it, each byte counts once, and nothing stays."""

from itertools import permutations

import numpy as np
import pytest

from streaming.common.rows import SEGMENTS, Kind
from tests.agent.broker_world import World, log_in
from tests.agent.broker_world import world as world
from tests.builders import batch, delete


def test_two_agents_become_one(world: World) -> None:
    logs = [log_in(world.dirs[number], f"t{number}", 3, 2) for number in (0, 1)]
    world.start("a1", 0)
    world.start("a2", 1)
    world.look("a1", "a2")
    for log in logs:
        log.append(batch(4), batch(5))
    world.look("a2")
    logs[1].append(batch(6))
    world.stop("a2")
    world.start("a1", 0, 1)
    world.look("a1")
    logs[1].append(batch(7))
    world.look("a1")
    world.check("t0", 14)
    world.check("t1", 27)


@pytest.mark.parametrize("order", [("a1", "a2"), ("a2", "a1")])
def test_one_agent_becomes_two(world: World, order: tuple[str, str]) -> None:
    logs = [log_in(world.dirs[number], f"t{number}", 3, 2) for number in (0, 1)]
    world.start("a1", 0, 1)
    world.look("a1")
    logs[1].append(batch(4), batch(5))
    world.start("a1", 0)
    world.start("a2", 1)
    world.look(*order)
    logs[1].append(batch(6))
    world.look(*order)
    world.check("t0", 5)
    world.check("t1", 20)


@pytest.mark.parametrize("looks", [True, False])
def test_an_agent_that_comes_back_after_another_one_has_watched_its_log_dir(world: World, *, looks: bool) -> None:
    """What the other one has not read is in one range with what it has."""
    log = log_in(world.dirs[0], "t", 3, 2)
    world.start("a1", 0)
    world.look("a1")
    world.pause("a1")
    log.append(batch(4))
    world.start("a2", 0)
    world.look("a2")
    log.append(batch(5))
    world.stop("a2")
    world.start("a1", 0)
    if looks:
        world.look("a1")
    log.append(batch(6))
    world.look("a1")
    world.check("t", 20)


@pytest.mark.parametrize("starts", list(permutations((("a1", 1), ("a2", 0)))))
@pytest.mark.parametrize("looks", list(permutations(("a1", "a2"))))
def test_two_agents_exchange_their_log_dirs(world: World, starts: list[tuple[str, int]], looks: tuple[str, str]) -> None:
    logs = [log_in(world.dirs[number], f"t{number}", 3, 2) for number in (0, 1)]
    world.start("a1", 0)
    world.start("a2", 1)
    world.look("a1", "a2")
    for name, number in starts:
        world.start(name, number)
        for log in logs:
            log.append(batch(4))
        world.look(*looks)
    world.look(*looks)
    world.check("t0", 13)
    world.check("t1", 13)


@pytest.mark.parametrize("order", list(permutations(("a1", "a2"))))
@pytest.mark.parametrize("names", [("a1", "a2"), ("a2", "a1")])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_replica_moves_to_the_log_dir_of_another_agent(
    world: World, order: tuple[str, str], names: tuple[str, str], at_once: bool
) -> None:
    log = log_in(world.dirs[0], "t", 3, 2)
    world.start(names[0], 0)
    world.start(names[1], 1)
    world.look(*names)
    log.append(batch(4), batch(5))
    moved = log_in(world.dirs[1], "t", 3, 2, 4, 5)
    delete(world.dirs[0], log).remove()
    rows = {name: world.rows(name) for name in names}
    if at_once:
        world.shard.fold(*rows["a1"], *rows["a2"])
    else:
        for name in order:
            world.shard.fold(*rows[name])
    moved.append(batch(6))
    world.look(*order)
    found = world.log("t")
    assert found is not None
    assert (found.departed, found.log_end_offset, found.share_records, sum(found.skipped_bytes)) == (False, 20, 20, 0)


@pytest.mark.parametrize("names", [("a1", "a2"), ("a2", "a1")])
def test_a_replica_that_is_gone_and_elsewhere_in_one_micro_batch_keeps_its_counters(world: World, names: tuple[str, str]) -> None:
    """Whichever agent's rows come first, and although what lies in the new log dir is read over several micro-batches."""
    log = log_in(world.dirs[0], "t", 3, 2)
    world.start(names[0], 0)
    world.start(names[1], 1)
    world.look(*names)
    log.append(batch(4), batch(5))
    world.look(names[0])
    log_in(world.dirs[1], "t", 3, 2, 4, 5).append(batch(6))
    delete(world.dirs[0], log).remove()
    gone, come = world.rows(names[0]), world.rows(names[1])
    first = next(number for number, row in enumerate(come) if row.kind == Kind.APPENDED)
    world.shard.fold(*gone, *come[:first])
    world.check("t", 14)
    world.shard.fold(*come[first:])
    world.check("t", 20)


def test_a_second_agent_gets_a_log_dir_that_the_first_one_watches(world: World) -> None:
    log = log_in(world.dirs[0], "t", 3, 2)
    log_in(world.dirs[1], "other", 1)
    world.start("a1", 0)
    world.start("a2", 1)
    world.look("a1", "a2")
    log.append(batch(4), batch(5))
    world.look("a1")
    log.append(batch(6))
    world.start("a2", 0, 1)
    world.look("a2", "a1")
    world.check("t", 20)


def test_a_topic_that_is_deleted_while_its_agent_is_renamed_leaves(world: World) -> None:
    deleted = log_in(world.dirs[0], "t", 3)
    log_in(world.dirs[0], "stays", 3)
    world.start("a1", 0)
    world.look("a1")
    world.stop("a1")
    delete(world.dirs[0], deleted).remove()
    world.start("a2", 0)
    world.look("a2")
    world.check("stays", 3)
    found = world.log("t")
    assert found is None or found.departed


@pytest.mark.parametrize("order", list(permutations((("a1", 0), ("a2", 1, 2)))))
def test_a_log_dir_is_given_to_another_agent_while_both_run(world: World, order: list[tuple[str, int]]) -> None:
    """Whichever of them begins with it first: for a while both watch it, or none."""
    log = log_in(world.dirs[1], "t", 3, 2)
    world.start("a1", 0, 1)
    world.start("a2", 2)
    world.look("a1", "a2")
    for again in order:
        log.append(batch(4), batch(5))
        world.start(*again)
        world.look("a1", "a2")
    world.check("t", 23)


@pytest.mark.parametrize("order", list(permutations(("a1", "a2"))))
@pytest.mark.parametrize("at_once", [True, False])
def test_the_segments_of_a_replica_that_moved_are_those_of_its_log_dir(world: World, order: tuple[str, str], at_once: bool) -> None:
    """Also where what the agent of its former log dir found there comes last."""
    log = log_in(world.dirs[0], "t", 3, 2)
    world.start("a1", 0)
    world.start("a2", 1)
    former = world.rows("a1")
    moved = log_in(world.dirs[1], "t", 3, 2, 4)
    moved.roll()
    moved.append(batch(6))
    delete(world.dirs[0], log).remove()
    rows = {"a1": [*former, *world.rows("a1")], "a2": world.rows("a2")}
    if at_once:
        world.shard.fold(*(row for name in order for row in rows[name]))
    else:
        for name in order:
            world.shard.fold(*rows[name])
    world.look(*order)
    found = world.log("t")
    assert found is not None
    assert found.segments is not None
    listed = np.frombuffer(found.segments, SEGMENTS)
    on_disk = sorted((int(path.stem), path.stat().st_size) for path in moved.directory.glob("*.log"))
    assert list(zip(listed["base_offset"].tolist(), listed["size"].tolist(), strict=True)) == on_disk
