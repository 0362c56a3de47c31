"""Decides when an agent lets go of the volumes of brokers that have left them.

A volume that one node may write (`ReadWriteOnce`) stays attached to its node as long as a pod there wants it: the agent's, too, after
its broker's pod has gone to another node, where it cannot start then. So an agent beside such a broker ends when the broker's process has,
and a pod that follows the broker takes its place. Locks do not show whether the broker comes back in the same pod: then the next agent is
there as soon. Where no process was seen to end, an agent is more patient: else a broker that cannot start, or whose locks are not seen,
would have one agent after the other.

Where the lock of one log dir cannot be asked, those of the others are enough. A broker that goes on after it has released one has given up
that log dir after an I/O error, and writes to the others every few seconds. So if one was released, none is held, and nothing is written
any more, the agent is not more patient than where the process is known to have ended. Should the broker run all the same, on a log dir
that cannot be read either, the agent is away for the moment until the next one is there.
"""

from collections.abc import Sequence

from streaming.rules.broker_process import ProcessLook, ProcessState

PATIENCE = 10
"""How many times as long an agent waits where it has seen no process end. A broker that runs writes much more often."""


def lets_go(looks: Sequence[ProcessLook], *, began_ms: int, after_ms: int, now_ms: int) -> bool:
    """Whether no broker has had a process for so long, as far as is seen.

    Args:
        looks: the last one at each broker; none if it is not known whose log dirs they are.
        began_ms: when the agent started, Unix milliseconds, as ``now_ms``.
        after_ms: how long a process that was seen to end has to be away, milliseconds.
    """
    if not looks:
        return now_ms - began_ms >= PATIENCE * after_ms
    ends = [ends_ms(each, began_ms=began_ms, after_ms=after_ms) for each in looks]
    return all(each is not None and each <= now_ms for each in ends)


def ends_ms(process: ProcessLook, *, began_ms: int, after_ms: int) -> int | None:
    """From when on a broker's process keeps no agent, if nothing else is seen until then, Unix milliseconds; None while it is there."""
    match process.state:
        case ProcessState.UP:
            return None
        case ProcessState.ENDED:
            return process.since_ms + after_ms
        case _ if process.released_ms >= 0:
            return max(process.released_ms, process.last_ms) + after_ms
        case _:
            return max(began_ms, process.last_ms) + PATIENCE * after_ms
