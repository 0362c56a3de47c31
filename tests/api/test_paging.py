"""What a listing is asked for, and which rows that is: the same as of a list that is sorted, filtered and cut in Python."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.json_message import ASC, DESC, Bytes, Heading, Name, PublicMessage, Word
from streaming.broker.protocol.listing_json import DEFAULT_LIMIT, LARGEST_LIMIT
from streaming.errors import UsageError
from streaming.pages.api.paging import PageRequest, Sheet, cut, natural_order, page_request, parameters_of, ranks
from streaming.pages.listings.declared_lists import GROUPS, RETENTION
from streaming.pages.listings.listing import Listing
from tests.tables import each_row

SORTABLE = ("topic", "size_bytes", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(PublicMessage):
    topic: Annotated[Name, Heading(sort=ASC)]
    size_bytes: Annotated[Bytes, Heading(sort=DESC)]
    verdict: Annotated[Word, Heading(sort=ASC)]


LISTING = Listing(name="shown", noun="row", row=Shown, default="size_bytes")
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "B", "ä", "orders"]), st.integers(0, 3), st.integers(-1, 5), st.sampled_from(["", "open", "hanging"])),
    max_size=30,
    unique_by=lambda row: row[:2],
)

Row = tuple[str, int, int, str]


def sheet(rows: list[Row]) -> Sheet:
    partitions = np.array([row[1] for row in rows], np.int64)
    return Sheet(
        columns={"size_bytes": np.array([row[2] for row in rows], np.int64), "verdict": ranks([row[3] for row in rows])},
        texts=[f"{row[0]}-{row[1]}" for row in rows],
        natural=natural_order([row[0] for row in rows], partitions, np.zeros(len(rows), np.int64)),
    )


def expected(rows: list[Row], sort: str, order: str, text: str) -> list[Row]:
    """The same, row by row."""
    kept = sorted((row for row in rows if text.casefold() in f"{row[0]}-{row[1]}".casefold()), key=lambda row: row[:2])
    if sort == "topic":
        return kept[::-1] if order == "desc" else kept
    value: Any = (lambda row: row[2]) if sort == "size_bytes" else (lambda row: row[3])
    known = [row for row in kept if value(row) not in (-1, "")]
    known.sort(key=value)
    if order == "desc":
        values = sorted({value(row) for row in known}, reverse=True)
        known = [row for each in values for row in known if value(row) == each]
    return known + [row for row in kept if value(row) in (-1, "")]


@given(
    ROWS, st.sampled_from(SORTABLE), st.sampled_from(["asc", "desc"]), st.sampled_from(["", "A", "r", "-1", "nothing"]), st.integers(1, 7)
)
def test_the_pages_one_after_the_other_are_the_sorted_rows(rows: list[Row], sort: str, order: str, text: str, limit: int) -> None:
    found, matched = [], set()
    for offset in range(0, len(rows) + limit, limit):
        page = cut(sheet(rows), PageRequest(sort=sort, order=order, filter=text, offset=offset, limit=limit))
        assert (page.total, len(page.items) <= limit) == (len(rows), True)
        matched.add(page.matched)
        found += [rows[item] for item in page.items]
    assert found == expected(rows, sort, order, text)
    assert matched == {len(found)}


def test_a_rate_that_is_no_number_is_not_known() -> None:
    rates = Sheet(columns={"r": np.array([np.nan, 2.0, -1.0, 3.0])}, texts=["t"] * 4, natural=np.arange(4))
    assert cut(rates, PageRequest(sort="r", order="desc")).items == [1 + 2, 1, 0, 2]
    assert cut(rates, PageRequest(sort="r", order="asc")).items == [1, 3, 0, 2]


@each_row(
    ("query", "expected"),
    [
        ("", PageRequest(sort="size_bytes", order="desc", limit=DEFAULT_LIMIT)),
        ("sort=topic", PageRequest(sort="topic", order="asc")),
        ("sort=verdict&order=desc", PageRequest(sort="verdict", order="desc")),
        ("filter=a%20b&offset=7&limit=1000", PageRequest(sort="size_bytes", order="desc", filter="a b", offset=7, limit=LARGEST_LIMIT)),
        ("limit=1&limit=2", PageRequest(sort="size_bytes", order="desc", limit=2)),
        ("filter=", PageRequest(sort="size_bytes", order="desc")),
    ],
)
def test_what_a_query_asks_for(query: str, expected: PageRequest) -> None:
    assert page_request(query, LISTING) == expected


@each_row(
    ("query", "named"),
    [
        ("sort=nothing", "sort is not one of topic, size_bytes, verdict"),
        ("order=up", "order is neither asc nor desc"),
        ("limit=0", "limit is not a whole number from 1 to 1,000"),
        ("limit=1001", "limit is not"),
        ("limit=-1", "limit is not"),
        ("limit=1e3", "limit is not"),
        ("limit=", "limit is not"),
        ("limit=٣", "limit is not"),
        ("offset=99999999999999999999", "offset is not"),
        (f"filter={'x' * 301}", "filter is longer than 300 characters"),
        ("colour=red", "'colour' is no parameter here; there are sort, order, filter, topic, offset, limit"),
        ("filter=%ff", "the query is not understood"),
        ("&".join(f"a{each}=1" for each in range(1001)), "the query is not understood"),
    ],
)
def test_a_bad_parameter_is_named(query: str, named: str) -> None:
    with pytest.raises(UsageError, match=named.replace("(", r"\(")):
        page_request(query, LISTING)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_a_filter_may_hold_anything(text: str) -> None:
    assert page_request(urlencode({"filter": text}), LISTING).filter == text


@given(st.text(max_size=60))
def test_any_query_is_answered_or_refused(query: str) -> None:
    with suppress(UsageError):
        assert set(parameters_of(query, ("sort",))) <= {"sort"}


def test_a_filter_may_be_as_long_as_that() -> None:
    assert page_request(f"filter={'x' * 300}", LISTING).filter == "x" * 300


@each_row(
    ("query", "expected"),
    [("", ()), ("use=in_use", (("use", frozenset({"in_use"})),)), ("use=abandoned,in_use", (("use", frozenset({"in_use", "abandoned"})),))],
)
def test_groups_are_chosen_by_who_uses_them(query: str, expected: tuple[tuple[str, frozenset[str]], ...]) -> None:
    assert page_request(query, GROUPS).chosen == expected


@pytest.mark.parametrize("use", ["", "used", "in_use,", "in_use,used", "IN_USE"])
def test_another_word_is_refused_with_those_that_there_are(use: str) -> None:
    words = "use is not one or more of in_use, unattended, abandoned, throw_away, unknown, with commas"
    with pytest.raises(UsageError, match=words):
        page_request(urlencode({"use": use}), GROUPS)
    with pytest.raises(UsageError, match="'use' is no parameter here"):
        page_request("use=in_use", RETENTION)


def test_rows_with_one_of_the_words_are_sorted_and_counted_as_the_others() -> None:
    words = {"use": ["in_use", "abandoned", "in_use", "unknown"]}
    whole = Sheet(columns={"n": np.array([1, 2, 3, 4])}, texts=["a", "b", "ab", "c"], natural=np.arange(4), words=words)

    def chosen(text: str, *some: str) -> tuple[list[int], int, int]:
        rows = cut(whole, PageRequest(sort="n", order="desc", filter=text, chosen=(("use", frozenset(some)),)))
        return rows.items, rows.matched, rows.total

    assert chosen("", "in_use") == ([2, 0], 2, 4)
    assert chosen("", "abandoned", "unknown") == ([3, 1], 2, 4)
    assert chosen("b", "in_use") == ([2], 1, 4)
    assert chosen("", "throw_away") == ([], 0, 4)


def test_a_list_without_topics_takes_no_topic() -> None:
    with pytest.raises(UsageError, match="'topic' is no parameter here"):
        page_request("topic=a", GROUPS)


def test_rows_of_some_topics_are_those_with_their_whole_names() -> None:
    whole = Sheet(columns={}, texts=["a-0", "ab-0", "b-0"], natural=np.arange(3), topics=["a", "ab", "b"])
    request = page_request("topic=a&topic=b", LISTING)
    assert request.topics == {"a", "b"}
    assert cut(whole, replace(request, sort="topic", order="asc")).items == [0, 2]
    assert cut(whole, PageRequest(sort="topic", order="asc", topics=frozenset({"nothing"}))).matched == 0
