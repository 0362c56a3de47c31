"""What segtail says of groups, held against what they consume."""

import urllib.request
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupDetailPage, GroupPage, path_of
from tests.broker.group_consuming import Left
from tests.broker.group_oracle import Arithmetic
from tests.broker.group_world import SHARED
from tests.broker.kafka import Kafka
from tests.broker.lab import Commit
from tests.commands import run_command
from tests.limits import SECONDS
from tests.processes import Page, read_page, until

Reported = Mapping[str, Any]
"""One partition of a group as `streaming.broker.protocol.group_json.GroupPartition` goes over the wire."""

Key = tuple[str, str, int]
_MOST = 20
_ATTENTION = 3  # the exit status where something needs attention


def reported_offline(kafka: Kafka) -> dict[Key, Reported]:
    """What `segtail groups` says now from the log dirs alone."""
    return reported_from_disk(kafka.log_dirs, [node.properties for node in kafka.brokers])


def reported_from_disk(log_dirs: Iterable[Path], properties: Iterable[Path], *options: str) -> dict[Key, Reported]:
    """What `segtail groups` says from log dirs alone."""
    of, by = (",".join(map(str, each)) for each in (log_dirs, properties))
    given = ("--log-dirs", of, "--server-properties", by, "--format", "json", *options)
    every = run_command("groups", *given)
    assert every.returncode in (0, _ATTENTION), every.stderr
    names = [each.group for each in GroupPage.decode(every.stdout.encode()).rows]
    done = run_command("groups", *given, "--", *names)
    assert done.returncode in (0, _ATTENTION), done.stderr
    return by_key(GroupDetailPage.decode(done.stdout.encode()).rows)


def by_key(groups: Iterable[GroupDetail]) -> dict[Key, Reported]:
    """The partitions of groups with a committed offset, or with a start offset; no answer shows what consumers have in memory of what is
    deleted.
    """
    return {
        (group.summary.group, each.topic, each.partition): asdict(each)
        | {"type": group.summary.type, "lost_offsets": each.lost_offsets + each.buffered_offsets}
        for group in groups
        for each in group.partitions
        if each.committed >= 0
    }


def reads_uncommitted(lefts: Sequence[Left]) -> frozenset[str]:
    """The groups that have committed an offset behind an open transaction."""
    return frozenset(left.commit.group for left in lefts if left.ends.last_stable < left.commit.offset <= left.ends.high_watermark)


def expected(left: Left, arithmetic: Arithmetic, uncommitted: Container[str] = ()) -> Reported:
    """What has to be said of one group and partition; ``uncommitted``: the groups that read so."""
    commit, ends = left.commit, left.ends
    reported = {
        "committed": commit.offset,
        "log_start": ends.log_start,
        "high_watermark": ends.high_watermark,
        "last_stable_offset": ends.last_stable,
        "lost_offsets": max(0, ends.log_start - commit.offset),
        "isolation": "read_uncommitted" if commit.group in uncommitted else "",
    }
    if left.uncommitted.records < 0:  # the broker refuses to read from there
        absent = ("lag_offsets", "lag_records_read_committed", "lag_records_read_uncommitted", "lag_bytes", "next_offset")
        return {**reported, "unknown": "beyond_end", **dict.fromkeys(absent, -1)}
    following = arithmetic.next_record(left)
    if left.committed.records:
        assert following == left.committed[1:], left
    if commit.group in uncommitted:
        following = left.uncommitted[1:]
    return {
        **reported,
        "unknown": "",
        "lag_offsets": ends.high_watermark - commit.offset,
        "lag_records_read_committed": left.committed.records,
        "lag_records_read_uncommitted": left.uncommitted.records,
        "lag_bytes": arithmetic.bytes(left),
        "next_offset": following[0],
        "next_timestamp_ms": following[1],
    }


def reported_by_job(url: str) -> dict[Key, Reported]:
    """What a running job answers about each of its groups; nothing before it has looked at them once."""
    base = url.removesuffix("/metrics")
    page = fetched(f"{base}{GROUPS_PATH}?limit=1000")
    groups = GroupPage.decode(page).rows if page else []
    return by_key(GroupDetail.decode(_get(base + path_of(each.group))) for each in groups)


def fetched(url: str) -> bytes:
    """The answer at an address; nothing while the job knows nothing yet."""
    try:
        return _get(url)
    except HTTPError as error:
        if error.code != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return b""


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        body: bytes = answer.read()
    return body


_OF_PARTITIONS = {
    "segtail_group_partition_committed_offset": "committed",
    "segtail_group_partition_lag_offsets": "lag_offsets",
    "segtail_group_partition_lag_records": "lag_records",
    "segtail_group_partition_lag_bytes": "lag_bytes",
}
_OF_TOPICS = {name.replace("_partition", ""): field for name, field in _OF_PARTITIONS.items() if "lag" in name}


def page_at(url: str) -> Page:
    """What a job that serves there exports now."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=SECONDS) as answer:
        return read_page(answer.read().decode())


def reported_by_page(page: Page) -> dict[Key, Reported]:
    """What a page says of each partition; a value that is absent is -1, as in JSON."""
    found: dict[Key, dict[str, Any]] = {}
    for series, value in page.items():
        if series.name in _OF_PARTITIONS:
            labels = dict(series.labels)
            row = found.setdefault((labels["group"], labels["topic"], int(labels["partition"])), dict.fromkeys(PAGE_FIELDS, -1))
            row[_field(_OF_PARTITIONS[series.name], labels)] = int(value)
    return found


def sums_by_page(page: Page) -> dict[tuple[str, str, str], int]:
    """The sums of groups and topics by (group, topic, field), but of share groups; ``unknown``: how many partitions are beyond the end."""
    found = {}
    for series, value in page.items():
        labels = dict(series.labels)
        if labels.get("group") in SHARED:
            continue
        if series.name in _OF_TOPICS:
            found[labels["group"], labels["topic"], _field(_OF_TOPICS[series.name], labels)] = int(value)
        elif series.name == "segtail_group_lag_unknown_partitions":
            assert labels["reason"] in ("beyond_end", "commit_newer"), labels  # the second of them for half a minute
            beyond = labels["group"], labels["topic"], "unknown"
            found[beyond] = found.get(beyond, 0) + int(value)
    return found


def sums(lefts: Sequence[Left], arithmetic: Arithmetic) -> dict[tuple[str, str, str], int]:
    """What the sums have to be: of the partitions that are known, and none if none is."""
    found: dict[tuple[str, str, str], int] = {}
    for left in lefts:
        reported = expected(left, arithmetic)
        fields = {"unknown": 1} if reported["unknown"] else {name: reported[name] for name in PAGE_FIELDS if name != "committed"}
        for name, value in fields.items():
            key = (left.commit.group, left.commit.topic, name)
            found[key] = found.get(key, 0) + value
    return found


def agree_on_share_groups(
    who: str, commits: Iterable[Commit], look: Callable[[], Mapping[Key, Reported]], seconds: float = SECONDS
) -> None:
    """It says of them where they start, and on topics where each offset is a record how many are left, as their coordinator does."""
    right = {(each.group, each.topic, each.partition): (each.offset, each.lag) for each in commits if each.lag >= 0}

    def stated() -> dict[Key, tuple[int, int]]:
        return {key: (each["committed"], each["lag_records_read_uncommitted"]) for key, each in look().items() if key[0] in SHARED}

    until(f"{who} says {right} of share groups", lambda: stated() == right, seconds, stated)


def _field(name: str, labels: Mapping[str, str]) -> str:
    return f"{name}_{labels['isolation']}" if "isolation" in labels else name


PAGE_FIELDS = ("committed", "lag_offsets", "lag_records_read_committed", "lag_records_read_uncommitted", "lag_bytes")


def differences(
    lefts: Sequence[Left], arithmetic: Arithmetic, reported: Mapping[Key, Reported], fields: Sequence[str] = ()
) -> Iterator[str]:
    """A line for each group and partition of which something else is said than what is so; all is compared, or these fields."""
    led = {left.key[1:] for left in lefts}
    if extra := {key for key in reported if key[1:] in led and key[0] not in SHARED} - {left.key for left in lefts}:
        yield f"not committed: {sorted(extra)}"
    uncommitted = reads_uncommitted(lefts)
    for left in lefts:
        stated = reported.get(left.key)
        if stated is None:
            yield f"{left.key} is missing"
            continue
        right = expected(left, arithmetic, uncommitted)
        wrong = {
            name: (stated.get(name), value) for name, value in right.items() if stated.get(name) != value and name in (fields or right)
        }
        if wrong:
            yield f"{left.key} says, and should say, {wrong}; {left}"


def agree(
    who: str,
    lefts: Sequence[Left],
    arithmetic: Arithmetic,
    look: Callable[[], Mapping[Key, Reported]],
    fields: Sequence[str] = (),
    seconds: float = SECONDS,
) -> None:
    """It says what is so, as soon as the last high watermarks have reached the disk or the job."""
    found: list[str] = []

    def agrees() -> bool:
        found[:] = differences(lefts, arithmetic, look(), fields)
        return not found

    try:
        until(f"{who} says what is consumed", agrees, seconds)
    except AssertionError:
        raise AssertionError(f"{who}: {len(found)} of {len(lefts)} differ:\n" + "\n".join(found[:_MOST])) from None
