"""What can be done about a transaction that hangs, or is stuck: until when its coordinator ends it by itself, and the command that ends it.

Nothing shows that a producer is alive but what it writes. That it is gone shows where it has committed offsets of groups and none of these
has a member; else the command is for whoever knows.
"""

from collections.abc import Collection
from dataclasses import dataclass

from streaming.cluster.verdicts.commands import Command, Commands
from streaming.cluster.verdicts.transaction_owners import owner_of
from streaming.common.formatting import TimeWords, format_list, format_word

NEAR_MS = 300_000
"""Within so long it is not worth to end a transaction by hand."""

_MOST_NAMED = 3

_NO_COORDINATOR = {
    "unknown": "whether a coordinator will end it cannot be told here: not all partitions of __transaction_state are read",
    "unclaimed": "no coordinator has it yet: it hangs if that stays so",
    "completing": "its coordinator has decided how it ends, and only its marker is missing: is the partition's leader there?",
}
"""Of verdicts about transactions that nobody is to end by their transactional ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckTransaction:
    """``deadline_ms``: when its timeout has passed, -1 not known. ``gone``: as `HeldBackGroups.gone_with`.

    ``loss_ms``: when the first of the groups that wait for it loses records, -1 if none does as far as is known.
    """

    transactional_id: str
    verdict: str
    deadline_ms: int
    loss_ms: int = -1
    gone: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """``advice``: what to know before the command is run, and what it does: a clause without a period. "" if the command only asks."""

    command: Command
    advice: str = ""


def remedy_of_hanging(commands: Commands, topic: str, partition: int, first_offset: int) -> Remedy:
    """The remedy of a transaction that no coordinator will end."""
    return Remedy(
        command=commands.abort(topic, partition, first_offset),
        advice="no coordinator will end it. The abort discards its records: first make sure that its producer has ended",
    )


def remedy_after_start(broker: int, *, hangs: bool) -> Remedy:
    """The remedy of a transaction in a log of a broker without a process: nobody writes its end there, whatever is asked of whom."""
    ends = "no coordinator will end it, and the abort" if hangs else "its end"
    return Remedy(
        command=Command(reason=f"broker {broker} is down: start it first"),
        advice=f"broker {broker} is down: {ends} is written only when that is started",
    )


def remedy_of(stuck: StuckTransaction, commands: Commands, times: TimeWords) -> Remedy:
    """The remedy of a stuck transaction."""
    ask = commands.describe_transaction(stuck.transactional_id) if stuck.transactional_id else Command(reason="its id is not known")
    if stuck.verdict in _NO_COORDINATOR:
        unknown = Command(reason="whether a coordinator will end the transaction is not known")
        return Remedy(command=ask if stuck.verdict == "completing" else unknown, advice=_NO_COORDINATOR[stuck.verdict])
    ends = _ends_by_itself(stuck.deadline_ms, times)
    until = f"if its producer does not end it, {ends}" if ends else "its coordinator has it, and when that ends it is not known"
    loses = 0 <= stuck.loss_ms < stuck.deadline_ms
    if loses:
        until += f"; before that, {times.at(stuck.loss_ms)}, who waits for it loses records"
    owner = owner_of(stuck.transactional_id)
    whose = f"by its id it is {owner.likely} of {owner.name}: {owner.known}" if owner is not None else ""
    if owner is not None and owner.loses:
        return Remedy(command=ask, advice=f"{until}. {whose[:1].upper()}{whose[1:]}")
    if not stuck.transactional_id or (0 <= stuck.deadline_ms < times.now_ms + NEAR_MS and not loses):
        return Remedy(
            command=ask,
            advice=f"{until}; until then end its producer, or start it again with its transactional.id{f'; {whose}' if whose else ''}",
        )
    groups = format_list([format_word(each) for each in stuck.gone], _MOST_NAMED)
    gone = (
        f"its producer is gone, for no group that it commits for has a member ({groups})" if stuck.gone else "only if its producer is gone"
    )
    return Remedy(
        command=commands.terminate(stuck.transactional_id),
        advice=f"{until}. {gone[:1].upper()}{gone[1:]}: the command ends it at once. It ends the transaction of whoever uses this id "
        "now, and is in Kafka's tools of 4.3, not in those of 3.9. Else end its producer, or start it again with its transactional.id"
        f"{f'; {whose}' if whose else ''}",
    )


def _ends_by_itself(deadline_ms: int, times: TimeWords) -> str:
    """When its coordinator ends a transaction, as a clause; "" if that is not known."""
    if deadline_ms < 0:
        return ""
    at = times.at(deadline_ms)
    return f"its coordinator should have at {at}" if deadline_ms < times.now_ms else f"its coordinator does at {at}"
