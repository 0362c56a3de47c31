"""Deletions that wait until a broker is started: one without a process deletes nothing, and nobody knows when it will be started.

Such a deletion has no time. Its limit may pass meanwhile: then the broker's first check takes it, which comes 30 seconds after the start
(``log.initial.task.delay.ms``, `kafka.log.LogManager.startup`).
"""

from collections.abc import Collection

import numpy as np

from streaming.common.arrays import Flags, Longs
from streaming.rules.segment_columns import ABSENT


def away_of(broker: Longs, away: Collection[int]) -> Longs:
    """The broker of each log where it surely has no process, `ABSENT` elsewhere.

    Args:
        away: the brokers without a process.
    """
    return np.where(np.isin(broker, list(away)), broker, ABSENT)


def after_start(at_ms: Longs, away: Longs) -> tuple[Longs, Longs]:
    """The times of deletions without those that wait for a start, and of each of these the broker that has to be started.

    Args:
        at_ms: when each would be if its broker ran, `ABSENT` for none.
        away: as `away_of` has it, one item for each.
    """
    waits: Flags = (at_ms != ABSENT) & (away != ABSENT)
    return np.where(waits, ABSENT, at_ms), np.where(waits, away, ABSENT)
