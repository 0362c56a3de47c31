"""The fold of one shard's rows in a worker: of all that the processor does, the part that needs pandas and the rules.

Spark also runs the processor in a process that only asks for the names of its values, and the driver holds one: both do without this.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pandas as pd

from streaming.broker.journal.range_values import cut, overwritten_from
from streaming.common.rows import ROWS, SHARD
from streaming.rules.shard import fold_shard
from streaming.rules.shard_state import ShardState


def fold_frames(shard: int, frames: Iterable[pd.DataFrame], logs: Any, lists: Any) -> Iterator[pd.DataFrame]:
    """Fold one micro-batch of one shard.

    Args:
        logs: Spark's value with the shard's logs.
        lists: Spark's value with their lists of segments, which is read only if it is needed.
    """
    before = ShardState(_kept(logs), partial(_kept, lists))
    packs = [bytes(packed) for frame in frames for packed in frame[ROWS]]
    folded = fold_shard(shard, before, packs, cut=cut, overwritten_from=overwritten_from)
    if folded.value is not None:
        logs.update((folded.value,))
    if folded.lists is not None:
        lists.update((folded.lists,))
    if folded.changed_rows is not None:
        yield pd.DataFrame({SHARD: [shard], ROWS: [folded.changed_rows]})


def _kept(state: Any) -> bytes | None:
    found = state.get()
    return None if found is None else bytes(found[0])
