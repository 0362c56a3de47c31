"""How everything was at moments that are past, in memory that is bounded: a moment is kept whenever something has changed."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

import cramjam

from streaming.broker.protocol.history_json import KeptStatus
from streaming.broker.protocol.status_json import ProblemPage, Status
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.status_message import problem_page, status_of

MOST_MOMENTS = 200
"""So many are kept, the newest: some 5 kB each in a cluster with a few dozen incidents."""

MOST_INCIDENTS = 200
"""The most incidents of a moment: the most severe ones."""

_MOST_VALUES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMoment:
    """The status at one time, and its incidents."""

    status: Status
    problems: ProblemPage


@dataclass(frozen=True, slots=True)
class _Packed:
    at_ms: int
    status: bytes
    problems: bytes


class KeptMoments:
    """For several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._moments: list[_Packed] = []  # the oldest first

    def keep(self, judged: JudgedLook) -> None:
        """Keep how everything is."""
        problems = problem_page(judged.problems, f"roots=true&limit={MOST_INCIDENTS}", judged.at_ms)
        kept = _Packed(judged.at_ms, _packed(status_of(judged).encode()), _packed(problems.encode()))
        with self._lock:
            self._moments = [*self._moments[-MOST_MOMENTS + 1 :], kept]

    def kept(self) -> list[KeptStatus]:
        """All of them, for the next job over the same checkpoint."""
        with self._lock:
            moments = self._moments
        return [
            KeptStatus(at_ms=each.at_ms, status=b64encode(each.status).decode(), problems=b64encode(each.problems).decode())
            for each in moments
        ]

    def recall(self, kept: Iterable[KeptStatus]) -> None:
        """Go on with those of a job before. Raises ValueError if they are none."""
        before = [_Packed(each.at_ms, b64decode(each.status, validate=True), b64decode(each.problems, validate=True)) for each in kept]
        with self._lock:
            self._moments = [*before, *self._moments][-MOST_MOMENTS:]

    def at(self, at_ms: int) -> KeptMoment | None:
        """The last one that is not later, None if none is kept of that time."""
        with self._lock:
            found = next((each for each in reversed(self._moments) if each.at_ms <= at_ms), None)
        if found is None:
            return None
        status, problems = _unpacked(found.status), _unpacked(found.problems)
        return KeptMoment(status=Status.decode(status, _MOST_VALUES), problems=ProblemPage.decode(problems, _MOST_VALUES))


def _packed(body: bytes) -> bytes:
    return bytes(cramjam.zlib.compress(body, 6))


def _unpacked(body: bytes) -> bytes:
    return bytes(cramjam.zlib.decompress(body))
