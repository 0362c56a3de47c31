"""The packed lines of the last page's families, of which the next page packs only those that it shows otherwise.

On an idle cluster most columns are what they were 15 seconds ago. What has changed is decided by the columns themselves: each value and
each label is compared with the one that was packed. Only packed lines are kept, and the columns of which they were made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.cluster.view.family import Family, Samples
from streaming.common.arrays import Flags, Longs
from streaming.common.definitions.metric import Metric
from streaming.pages.exposition.family_lines import lines_of, text_of
from streaming.pages.exposition.gzip_pieces import GzipPiece, pack

PIECE_SERIES = 1024
"""A piece has about so many series: 100 KB, which pack as well as a whole family does. A value that changes costs a piece of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Packed:
    """A family, and the pieces of its lines; each but the last has the lines of as many subjects."""

    family: Family
    pieces: tuple[GzipPiece, ...]


class KeptLines:
    """For one thread at a time. It holds what the last page had, and nothing of those before.

    Args:
        piece_series: so many series, about, are packed together.
    """

    def __init__(self, piece_series: int = PIECE_SERIES) -> None:
        self._piece_series = piece_series
        self._kept: dict[Metric, _Packed] = {}

    def packed(self, families: Sequence[Family]) -> list[tuple[GzipPiece, ...]]:
        """The lines of each family as they would be packed anew; every family has a series."""
        labels = _Labels(packed.family.labels for packed in self._kept.values())
        found = {}
        for family in families:
            subjects = max(1, self._piece_series // len(family.samples))
            shared = replace(family, labels=labels.one_of(family.labels))
            found[family.metric] = _packed(shared, self._kept.get(family.metric), subjects)
        self._kept = found
        return [packed.pieces for packed in found.values()]


class _Labels:
    """One array for all that are equal, whichever page they are of: so they are compared once a page, and kept once."""

    def __init__(self, arrays: Iterator[pa.LargeStringArray]) -> None:
        self._known: dict[int, list[pa.LargeStringArray]] = {}  # by the number of labels
        self._found: dict[int, tuple[pa.LargeStringArray, pa.LargeStringArray]] = {}  # by identity: the array itself, and its equal
        for each in arrays:
            self.one_of(each)

    def one_of(self, labels: pa.LargeStringArray) -> pa.LargeStringArray:
        """The array that stands for all that equal this one."""
        if id(labels) not in self._found:
            known = self._known.setdefault(len(labels), [])
            equal = next((each for each in known if each.equals(labels)), None)
            if equal is None:
                known.append(labels)
            self._found[id(labels)] = labels, labels if equal is None else equal
        return self._found[id(labels)][1]


def _packed(family: Family, last: _Packed | None, subjects: int) -> _Packed:
    """The family's lines, in pieces of so many subjects: those that are as they were, and the others packed anew."""
    if last is None or not _is_alike(last.family, family):
        return _Packed(family=_copied(family), pieces=tuple(_pieces(family, subjects)))
    changed = _changed(last.family, family)
    if not changed.any():
        return last
    stale = np.logical_or.reduceat(changed, np.arange(0, len(changed), subjects))
    new = _pieces(_of_subjects(family, np.flatnonzero(np.repeat(stale, subjects)[: len(changed)])), subjects)
    pieces = (next(new) if is_stale else piece for piece, is_stale in zip(last.pieces, stale.tolist(), strict=True))
    return _Packed(family=_copied(family), pieces=tuple(pieces))


def _is_alike(last: Family, family: Family) -> bool:
    """Whether the two differ in values at most."""
    return last.labels is family.labels and list(map(_kind, last.samples)) == list(map(_kind, family.samples))


def _kind(samples: Samples) -> tuple[str, str, bool, np.dtype[np.int64]]:
    return samples.suffix, samples.label, samples.thousandths, samples.values.dtype


def _changed(last: Family, family: Family) -> Flags:
    """Which subjects have another value than before."""
    differing = [before.values != now.values for before, now in zip(last.samples, family.samples, strict=True)]
    found: Flags = np.logical_or.reduce(differing)
    return found


def _copied(family: Family) -> Family:
    """The same, without what its values are a part of."""
    return replace(family, samples=tuple(replace(each, values=each.values.copy()) for each in family.samples))


def _of_subjects(family: Family, subjects: Longs) -> Family:
    """The family of some of its subjects."""
    if len(subjects) == len(family.labels):
        return family
    samples = tuple(replace(each, values=each.values[subjects]) for each in family.samples)
    return replace(family, labels=family.labels.take(pa.array(subjects)), samples=samples)


def _pieces(family: Family, subjects: int) -> Iterator[GzipPiece]:
    """The pieces of a family's lines, each of so many subjects."""
    lines = lines_of(family)
    for at in range(0, len(lines), subjects):
        yield pack(text_of(lines.slice(at, subjects)))
