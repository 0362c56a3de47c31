"""Decides when an agent lets go of the volumes of brokers that have left them.

A volume that one node may write (`ReadWriteOnce`) stays attached to its node as long as a pod there wants it: the agent's, too, after
its broker's pod has gone to another node, where it cannot start then. So an agent beside such a broker ends when the broker's process has,
and a pod that follows the broker takes its place. Locks do not show whether the broker comes back in the same pod: then the next agent is
there as soon. Where no process was seen to end, an agent is more patient: else a broker that cannot start, or whose locks are not seen,
would have one agent after the other.
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
    return all(_is_gone(each, began_ms, after_ms, now_ms) for each in looks)


def _is_gone(process: ProcessLook, began_ms: int, after_ms: int, now_ms: int) -> bool:
    match process.state:
        case ProcessState.UP:
            return False
        case ProcessState.ENDED:
            return now_ms - process.since_ms >= after_ms
        case _:
            return now_ms - max(began_ms, process.last_ms) >= PATIENCE * after_ms
