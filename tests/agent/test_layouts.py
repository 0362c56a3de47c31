"""Agents of one broker whose log dirs are split, merged, swapped and shared in any order, while logs grow: each record counts once."""

import random

import pytest

from tests.agent.broker_world import World, log_in, world
from tests.builders import batch

__all__ = ["world"]

LAYOUTS: dict[str, dict[str, tuple[int, ...]]] = {
    "split": {"a0": (0,), "a1": (1,)},
    "merged": {"a0": (0, 1)},
    "swapped": {"a0": (1,), "a1": (0,)},
    "other": {"a1": (0, 1)},
    "shared": {"a0": (0, 1), "a1": (0, 1)},
}
"""Of each agent the log dirs."""


@pytest.mark.parametrize("seed", range(40))
def test_each_record_counts_once_whoever_watches_it(world: World, seed: int) -> None:
    draw = random.Random(seed)
    logs, written = [log_in(world.dirs[number], f"t{number}", 3, 2) for number in (0, 1)], 5

    def arrange(layout: dict[str, tuple[int, ...]]) -> None:
        for name in world.readers.keys() - layout.keys():
            draw.choice([world.stop, world.pause])(name)
        for name in draw.sample(sorted(layout), len(layout)):
            world.start(name, *layout[name])
            if draw.random() < 0.3:
                world.look(name)

    arrange(LAYOUTS["split"])
    world.look("a0", "a1")
    for _ in range(6):
        arrange(LAYOUTS[draw.choice(sorted(LAYOUTS))])
        for log in logs:
            log.append(batch(4))
        written += 4
        world.look(*draw.sample(world.running, draw.randrange(len(world.running) + 1)))
    arrange(LAYOUTS["split"])
    for _ in range(2):
        world.look("a0", "a1")
    world.check("t0", written)
    world.check("t1", written)
