"""What CONTRIBUTING.md shows of adding a counter is all that it takes: it is done in a copy of the code, and the counter works there."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from streaming.broker.journal.blocks import PlacedEvent, block_of, pack, rows_of, unpack
from streaming.common.event_row import Event
from streaming.common.rows import Kind

ROOT = Path(__file__).resolve().parents[1]
EVENT_BEFORE = Event(kind=Kind.APPENDED, broker=1, topic="orders", partition=2, topic_id="id", bytes=70, records=3)

IN_THE_COPY = """
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import streaming
from streaming.spark.client.column_versions import as_events
from streaming.common.event_row import EVENTS
from streaming.broker.journal.blocks import PlacedEvent, block_of, pack, rows_of, unpack
from streaming.broker.journal.range_values import cut, overwritten_from
from streaming.common.rows import Kind, unpack_rows
from streaming.rules.shard import fold_by_columns, fold_by_rows
from streaming.rules.shard_state import ShardState
from streaming.kafka.scan.pieces import Piece, scan_few, scan_many
from streaming.kafka.scan.sums import COUNTS, sum_ranges
from streaming.common.state_row import STATES
from tests.builders import batch, commit
from tests.events import Item, batch_of, batches_of, row
from tests.formats.segments import written
from tests.exposition.reading import page
from tests.view.rows import EVER, untold_table

root, scratch = map(Path, sys.argv[1:])
assert Path(streaming.__file__).is_relative_to(scratch), streaming.__file__

# a range with one marker
(sums,) = sum_ranges(batches_of([Item(0, 4, 90, 4), Item(4, 5, 78, 1, control=True)]), np.zeros(1, np.intp))
counts = {name: getattr(sums, name) for name in COUNTS}
first = row(Kind.APPENDED, 2, base_offset=0, next_offset=5, leads=1, settled=True, start_position=0, end_position=168, **counts)
assert (first.control_batches, first.batches) == (1, 1)

# bytes with one marker, in both ways of scanning them
content = written([batch(1, producer=7, transactional=True), commit(7)])
for way in (scan_few, scan_many):
    (scanned,) = way(content.buffer, [Piece(0, len(content.data), 0)])
    assert (scanned.sums.control_batches, scanned.sums.batches) == (1, 1), way

# the range after it
second = replace(first, seq=3, base_offset=5, next_offset=10, start_position=168, end_position=336)

# both ways of folding lead to the same states, also on a state of before
rows = [row(Kind.APPEARED, 1, next_offset=0, settled=True), first, second]
for fold in (fold_by_rows, fold_by_columns):
    before = ShardState((root / "tests/golden/shard_state_6.bin").read_bytes(), (root / "tests/golden/segment_lists_3.bin").read_bytes)
    assert len(before.table)
    assert [before.find(key).control_batches for key in before.known()] == [0] * len(before.table)
    for each in (rows[:1], rows[1:]):
        folded = fold(7, before, [batch_of(each)], cut=cut, overwritten_from=overwritten_from)
        before = ShardState(folded.value, lambda: None)
    changed = pa.Table.from_batches([unpack_rows(folded.changed_rows, STATES)])
    assert changed["control_batches"].to_pylist() == [2], fold

# what is handed out is on the page
table = untold_table()
table.set_reading({"a1": EVER})
table.apply(changed)
(line,) = [each for each in page(table).splitlines() if each.startswith("segtail_partition_control_batches_total{")]
assert line == 'segtail_partition_control_batches_total{broker="1",topic="orders",partition="0"} 2', line

# a block, and an agent, of before
(found,) = rows_of(unpack((scratch / "before.block").read_bytes()))
assert (found.event.records, found.event.control_batches) == (3, 0)
sent = pa.Table.from_batches([batch_of(rows)]).drop_columns(["control_batches"])
assert as_events(sent)["control_batches"].to_pylist() == [0, 0, 0]
(scratch / "after.block").write_bytes(pack(block_of([replace(found, event=replace(found.event, control_batches=5))])))
"""


def shown() -> Iterator[tuple[str, str, str]]:
    """The file of each change that is shown, the lines that it has to have, and what these become."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^## A first change: a counter$.*?^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    path = ""
    for part in re.split(r"\n\n", block.rstrip("\n")):
        lines = part.split("\n")
        if not lines[0].startswith((" ", "+", "-")):
            path, *lines = lines
        assert all(line.startswith((" ", "+", "-")) for line in lines), part
        before, after = ("".join(f"{line[1:]}\n" for line in lines if not line.startswith(sign)) for sign in "+-")
        yield path, before, after


def test_the_counter_that_is_shown_is_counted_kept_and_exported(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "streaming", tmp_path / "streaming", ignore=shutil.ignore_patterns("__pycache__"))
    for path, before, after in shown():
        text = (tmp_path / path).read_text(encoding="utf-8")
        if after in text:  # as an import that another column needs, too
            continue
        assert text.count(before) == 1, f"{path} has not these lines once, which CONTRIBUTING.md shows. Mend them there:\n{before}"
        (tmp_path / path).write_text(text.replace(before, after), encoding="utf-8")
    (tmp_path / "before.block").write_bytes(pack(block_of([PlacedEvent(1, 70, EVENT_BEFORE)])))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", IN_THE_COPY, str(ROOT), str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # a block that goes back to this version: the column is left out
    (found,) = rows_of(unpack((tmp_path / "after.block").read_bytes()))
    assert found.event == EVENT_BEFORE
