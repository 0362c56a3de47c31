"""Groups that a job serves, to whoever asks for them by a command."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import parse_qs, unquote, urlsplit

from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupFinding, GroupPage, GroupPartition, GroupSummary
from streaming.broker.protocol.listing_json import AwayBroker
from tests.builders import NOW
from tests.serving import answering


@contextmanager
def job(
    groups: list[GroupDetail],
    *,
    omitted: int = 0,
    unavailable: str = "",
    path: str = GROUPS_PATH,
    away: Sequence[AwayBroker] = (),
) -> Iterator[str]:
    """Serves groups as a job does, two a page at most, at this path."""

    def answer(asked_path: str) -> tuple[int, bytes]:
        asked = urlsplit(asked_path)
        name = unquote(asked.path.removeprefix(f"{path}/"))
        found = page(parse_qs(asked.query)) if asked.path == path else next((g for g in groups if g.summary.group == name), None)
        status = 503 if unavailable else 404 if found is None else 200
        return status, unavailable.encode() if found is None or unavailable else found.encode()

    def page(query: dict[str, list[str]]) -> GroupPage:
        assert query.get("fetch_bytes", ["1048576"]) == ["1048576"]
        offset = int(query.get("offset", ["0"])[0])
        every = [group.summary for group in groups if query.get("filter", [""])[0].casefold() in group.summary.group]
        rows = every[offset : offset + 2]
        total, matched = len(groups), len(every)
        facts = {"omitted": omitted, "data_age_ms": max((group.data_age_ms for group in groups), default=0)}
        page = GroupPage(at_ms=NOW, rows=rows, total=total, matched=matched, offset=offset, sort="verdict", order="asc", **facts)
        return replace(page, away=[*away])

    with answering(answer) as url:
        yield url


def detail(name: str, verdict: str = "fine", severity: str = "", text: str = "nothing found", topic: str = "orders") -> GroupDetail:
    judged = {"verdict": verdict, "severity": severity}
    of = GroupPartition(topic="orders", partition=0, lag_offsets=5, lag_records_read_committed=4, **judged)  # type: ignore[arg-type]
    summary = GroupSummary(group=name, partitions=1, lag_offsets=5, lag_records_read_committed=4, **judged)  # type: ignore[arg-type]
    finding = GroupFinding(topic=topic, partition=0, text=text, **judged)  # type: ignore[arg-type]
    return GroupDetail(at_ms=NOW, summary=summary, partitions=[of], findings=[finding])


GROUPS = [
    detail("late", "will_lose", "critical", "its oldest unread records will be deleted"),
    detail("a b", "held", "warning", "held up"),
    detail("fine"),
]
