"""Who reads a topic: the consumer groups with committed offsets in it, each with what it has left there and its worst verdict there."""

from collections.abc import Mapping

import numpy as np

from streaming.broker.protocol.group_verdicts import GroupVerdict
from streaming.broker.protocol.listing_json import TopicReader
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.verdicts.group_judge import Judgement
from streaming.common.arrays import Longs, whole_sum
from streaming.pages.api.listed_groups import ListedGroups

_NO_CODE = np.iinfo(np.int64).max


def groups_by_topic(listed: ListedGroups) -> Mapping[str, int]:
    """How many groups that are shown have committed offsets in each topic that has any."""
    rows, logs = listed.snapshot.rows, listed.snapshot.logs
    names = {name: number for number, name in enumerate(dict.fromkeys(logs.topics))}
    topic_of_log = np.array([names[name] for name in logs.topics], np.int64)
    shown = np.zeros(len(rows.group_names) + 1, np.bool_)
    shown[listed.totals.number] = True  # the last one for groups without a committed offset
    some = np.flatnonzero(shown[rows.group])
    pairs = np.unique(topic_of_log[logs.of_row[some]] * (len(rows.group_names) + 1) + rows.group[some])
    counts = np.bincount(pairs // (len(rows.group_names) + 1), minlength=len(names)).tolist()
    return {name: counts[number] for name, number in names.items()}


def readers_of(listed: ListedGroups, topic: str) -> list[TopicReader]:
    """The groups that read a topic, the worst first, of these the one with the largest lag."""
    rows, logs, lags = listed.snapshot.rows, listed.snapshot.logs, listed.snapshot.found.lags
    its = np.array([name == topic for name in logs.topics], np.bool_)
    some = np.flatnonzero(its[logs.of_row]) if len(its) else np.empty(0, np.int64)
    codes, left = _worst_codes(listed, some), lags.left
    names = {number: name for name, number in zip(listed.totals.names, listed.totals.number.tolist(), strict=True) if number != ABSENT}
    found = []
    for number in np.unique(rows.group[some]).tolist():
        if number not in names:
            continue
        own = rows.group[some] == number
        of_group = some[own]
        worst = _judgement(listed, of_group, codes[own])
        reader = TopicReader(
            group=names[number],
            partitions=len(of_group),
            lag_records=whole_sum(left[of_group]),
            lag_offsets=whole_sum(lags.offsets[of_group]),
            verdict=worst.verdict.label,
            severity=worst.word,
            since_ms=worst.since_ms,
        )
        found.append((worst.severity, worst.verdict, -reader.lag_records, reader.group, reader))
    return [reader for *_, reader in sorted(found, key=lambda each: each[:-1])]


def _worst_codes(listed: ListedGroups, rows: Longs) -> Longs:
    """The worst judgement of each of some commits, by severity and verdict."""
    severity = listed.judged.commits.severity[:, rows].astype(np.int64)
    codes = severity * len(GroupVerdict) + np.arange(len(GroupVerdict))[:, None]
    found: Longs = np.where(severity == ABSENT, _NO_CODE, codes).min(axis=0, initial=_NO_CODE)
    return found


def _judgement(listed: ListedGroups, rows: Longs, codes: Longs) -> Judgement:
    place = int(codes.argmin())
    return listed.judged.judgement(GroupVerdict(int(codes[place]) % len(GroupVerdict)), int(rows[place]))
