"""Which positions a round asks to know what lies between the offsets of moves: of each where it begins, then where it ends."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_questions import Question, by_agent, plain_question
from streaming.common.arrays import Flags, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgesWanted:
    """Stretches of logs, one item for each. ``reads_uncommitted``: as in `Wanted`."""

    log: Longs
    first: Longs
    end: Longs
    reads_uncommitted: Flags


def about_edges(logs: GroupLogs, wanted: EdgesWanted) -> Iterator[Question]:
    """What agents are asked about the edges of stretches."""
    for agent, own in by_agent(logs, np.arange(len(wanted.log)), wanted.log):
        offset = np.concatenate([wanted.first[own], wanted.end[own]])
        yield plain_question(agent, logs, np.tile(wanted.log[own], 2), offset, np.tile(wanted.reads_uncommitted[own], 2))
