"""An inventory that is kept up to date says what one made anew says, whatever happens to the log between looks."""

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streaming.broker.disk.log_inventory import Inventory, LogInventory
from streaming.broker.disk.logdirs import list_partitions, open_log_dirs
from streaming.simulator.log import compact
from tests.builders import NOW, batch, log_dir, partition
from tests.scratch import scratch

TIMES = st.one_of(st.just(-1), st.integers(NOW, NOW + 10_000))


class KeptInventory(RuleBasedStateMachine):
    """A log in which anything may happen, and an inventory that has looked at it all the time. Directories are as young as they are."""

    @initialize(preallocate=st.booleans())
    def begin(self, preallocate: bool) -> None:
        self.directory = scratch()
        disk = log_dir(Path(self.directory.name))
        self.log = partition(disk, "t", index_interval_bytes=0, preallocate=preallocate)
        (opened,) = open_log_dirs([disk.path])
        (self.partition,) = list_partitions(opened)
        self.kept = Inventory(thorough=True)
        self.epoch = 0

    @rule(times=st.lists(TIMES, min_size=1, max_size=4), records=st.integers(1, 3))
    def append(self, times: list[int], records: int) -> None:
        self.log.append(*(batch(records, timestamp=time) for time in times), leader_epoch=self.epoch)

    @precondition(lambda self: self.log.active.size)
    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        start = max(self.log.segments[0].base_offset, self.log.log_start_offset)
        self.log.truncate(start + int(part * (self.log.log_end_offset - start)))
        self.epoch += 1

    @precondition(lambda self: any(segment.entries for segment in self.log.segments[:-1]))
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        segment = data.draw(st.sampled_from([segment for segment in self.log.segments[:-1] if segment.entries]))
        keep = data.draw(st.sets(st.sampled_from([entry.base_offset for entry in segment.entries])))
        compact(self.log, segment.base_offset, keep)

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        start = self.log.log_start_offset
        self.log.delete_records(start + int(part * (self.log.log_end_offset - start)))
        self.log.delete_old_segments(NOW)
        self.log.unlink_deleted(NOW + 10**9)

    @invariant()
    def the_kept_one_is_as_one_made_anew(self) -> None:
        kept, anew = self.kept.look(self.partition), Inventory(thorough=True).look(self.partition)
        assert kept is not None
        assert anew is not None
        assert _reported(kept) == _reported(anew)
        largest = [max((entry.max_timestamp for entry in segment.entries), default=-1) for segment in self.log.segments]
        assert kept.segments["largest_timestamp"].tolist() == largest
        assert kept.segments["base_offset"].tolist() == [segment.base_offset for segment in self.log.segments]
        assert kept.segments["size"].tolist() == [segment.size for segment in self.log.segments]
        assert kept.end_offset == self.log.log_end_offset

    def teardown(self) -> None:
        self.log.close()
        self.directory.cleanup()


def _reported(inventory: LogInventory) -> tuple[object, ...]:
    names = [name for name in LogInventory.__dataclass_fields__ if name not in ("partition", "segments")]
    return (inventory.segments.tolist(), *(getattr(inventory, name) for name in names))


TestKeptInventory = KeptInventory.TestCase
TestKeptInventory.settings = settings(stateful_step_count=15)
