"""Rebalances that members really made, as the log dirs show them: who joined and left, and the generation that their clients were in."""

from dataclasses import dataclass

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.rebalance_comparing import agree
from tests.broker.rebalancing import Step
from tests.group_answers import detailed
from tests.recorded.recordings import WORLDS, Replayed, replay

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class RecordedRebalances:
    """A broker's disk, and what was done to each group."""

    replayed: Replayed

    @property
    def steps(self) -> dict[str, list[Step]]:
        return {name: [Step(*each) for each in of] for name, of in self.replayed.json("steps").items()}

    def of(self, group: str, after_ms: int = 0) -> GroupDetail:
        """What the disk shows, so long after it was recorded."""
        disk = self.replayed.disk()
        (found,) = detailed(
            read_groups(open_log_dirs(disk.log_dirs), [group], Settings(server_properties=disk.properties), disk.now_ms + after_ms)
        ).groups
        return found


@pytest.fixture(scope="module", params=WORLDS["rebalances"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RecordedRebalances:
    return RecordedRebalances(replay("rebalances", request.param, tmp_path_factory.mktemp(f"rebalances-{request.param}")))


def test_who_joined_and_left_is_what_was_done(world: RecordedRebalances) -> None:
    classic = {"eager", "cooperative", "static"}
    assert classic <= world.steps.keys() <= classic | {"newer", "newer-static"}
    for group, steps in world.steps.items():
        metadata = "members" if group in classic else "metadata"
        assert agree(steps, world.of(group).rebalances[::-1], metadata=metadata) >= 2, group


def test_the_generation_is_that_of_the_clients(world: RecordedRebalances) -> None:
    for group, steps in world.steps.items():
        found = world.of(group)
        shown = {each.generation for each in found.rebalances}
        of_clients = {step.generation for step in steps if step.generation >= min(shown)}
        assert of_clients, group
        assert of_clients <= shown, group
        assert found.summary.epoch == max(shown), "the last member that left, or whose session has ended, is in it"


def test_a_member_that_comes_and_goes_is_named_until_it_has_stayed(world: RecordedRebalances) -> None:
    for group in world.steps.keys() & {"eager", "cooperative", "newer"}:
        found = world.of(group)
        assert (found.summary.verdict, found.summary.severity) == ("rebalancing", "warning"), group
        about = found.findings[0].text
        assert about.startswith(f"it has rebalanced {found.summary.rebalances_lately} times within "), about
        assert "b (/127.0.0.1) left " in about
        assert world.of(group, 12 * MINUTE_MS).summary.verdict != "rebalancing", "it has ended"


def test_static_members_that_come_back_are_no_storm(world: RecordedRebalances) -> None:
    for group in world.steps.keys() & {"static", "newer-static"}:
        found = world.of(group)
        assert found.summary.verdict != "rebalancing"
        assert found.summary.rebalances_lately <= 3
