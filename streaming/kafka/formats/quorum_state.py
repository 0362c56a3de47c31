"""`quorum-state` next to the metadata log: a node's record of the quorum's elections (`FileQuorumStateStore`, `QuorumStateData`).

One JSON object. Version 0: `clusterId, leaderId, leaderEpoch, votedId, appliedOffset, currentVoters [{voterId}], data_version`. Version 1
(Kafka 3.9, voters that may change): `leaderId, leaderEpoch, votedId, votedDirectoryId, data_version`. Kafka replaces the file by a rename.
"""

import json
from dataclasses import dataclass

from streaming.errors import FormatError, quoted
from streaming.kafka.formats.wire import check_uuid

_VERSIONS = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """`leader_id` is the active controller and `voted_id` the node that this one voted for, -1 if there is none.

    `voters` is empty in version 1, where the metadata log contains them; `voted_directory_id` is None in version 0.
    """

    version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None
    voters: tuple[int, ...]


def parse_quorum_state(data: bytes) -> QuorumState:
    """Parse the quorum state of a node. Raises FormatError if it is not one of the two versions."""
    try:
        state = json.loads(data)
    except (ValueError, RecursionError) as error:  # not UTF-8 is a ValueError too
        raise FormatError(f"quorum state is not JSON: {error}") from error
    if not isinstance(state, dict):
        raise FormatError("quorum state is not a JSON object")
    version = _number(state, "data_version")
    if version not in _VERSIONS:
        raise FormatError(f"quorum state of version {version} is not known")
    return QuorumState(
        version=version,
        leader_id=_number(state, "leaderId"),
        leader_epoch=_number(state, "leaderEpoch"),
        voted_id=_number(state, "votedId"),
        voted_directory_id=_uuid(state, "votedDirectoryId") if version == 1 else None,
        voters=_voters(state.get("currentVoters")) if version == 0 else (),
    )


def _number(state: dict[str, object], name: str) -> int:
    value = state.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError(f"{name} of the quorum state is {quoted(value)}, not a number")
    return value


def _uuid(state: dict[str, object], name: str) -> str:
    value = state.get(name)
    if not isinstance(value, str):
        raise FormatError(f"{name} of the quorum state is {quoted(value)}, not a UUID")
    return check_uuid(value)


def _voters(value: object) -> tuple[int, ...]:
    if value is None:  # nullable in version 0
        return ()
    if not isinstance(value, list):
        raise FormatError(f"currentVoters of the quorum state is {quoted(value)}, not a list")
    return tuple(_number(voter if isinstance(voter, dict) else {}, "voterId") for voter in value)
