"""What a listing is asked for, and which rows that is: sorted, filtered and cut on columns, so that ten thousand rows cost little."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import parse_qs

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.json_message import ASC, DESC, PublicMessage, Unit
from streaming.broker.protocol.listing_json import DEFAULT_LIMIT, LARGEST_LIMIT, ListPage
from streaming.common.arrays import Longs
from streaming.common.units import format_list
from streaming.errors import UsageError
from streaming.pages.listings.listing import Listing

P = TypeVar("P", bound=ListPage)

TOPIC = "topic"
_MOST_PARAMETERS = 1000

LONGEST_FILTER = 300
"""The most characters of a filter."""

_LARGEST_OFFSET = 10**9
_MOST_NAMED = 5

_LAST = 10**6
"""After the place of every kind of problem."""


def columns_of_rows(listing: Listing, rows: Sequence[PublicMessage]) -> dict[str, NDArray[Any]]:
    """The numbers by which rows that are made already can be sorted, by field: of words their ranks. The topic has none: see `cut`."""
    found: dict[str, NDArray[Any]] = {}
    for each in listing.fields:
        if each.sort and each.name != TOPIC:
            values = [getattr(row, each.name) for row in rows]
            kind = np.float64 if each.unit in (Unit.RATE, Unit.BYTES_RATE) else np.int64
            found[each.name] = ranks(values) if each.unit in (Unit.NAME, Unit.WORD) else np.array(values, kind)
    return found


def ranks(texts: Sequence[str]) -> Longs:
    """Numbers in the order of texts; -1 for "", which is not known."""
    if not len(texts):
        return np.empty(0, np.int64)
    distinct = {text: place for place, text in enumerate(sorted(set(texts) - {""}))}
    return np.fromiter((distinct.get(text, -1) for text in texts), np.int64, len(texts))


def page_request(query: str, listing: Listing, largest: int = LARGEST_LIMIT, others: Collection[str] = ()) -> PageRequest:
    """The rows of a listing that a query string asks for.

    Args:
        others: parameters that are there, and are read elsewhere.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    topic = [TOPIC] if any(each.name == TOPIC for each in listing.fields) else []
    given = parameters_of(query, ("sort", "order", "filter", *topic, *listing.chosen_by, "offset", "limit", *others))
    sort = given.get("sort", listing.default)
    if sort not in listing.sortable:
        raise no_such_word("sort", sort, listing.sortable)
    order = given.get("order", listing.order(sort))
    if order not in (ASC, DESC):
        raise UsageError("order is neither asc nor desc")
    return PageRequest(
        sort=sort,
        order=order,
        filter=filter_of(given),
        offset=offset_of(given),
        limit=limit_of(given, largest=largest),
        topics=topics_of(query),
        chosen=tuple((name, words_of(given, name, words)) for name, words in listing.chosen_by.items() if name in given),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """The rows that a request asks for of a listing: see `streaming.broker.protocol.listing_json`."""

    sort: str
    order: str
    filter: str = ""
    offset: int = 0
    limit: int = DEFAULT_LIMIT
    topics: frozenset[str] = frozenset()
    chosen: tuple[tuple[str, frozenset[str]], ...] = ()  # of fields, the words of which a row has to have one


def parameters_of(query: str, allowed: Collection[str]) -> dict[str, str]:
    """The parameters of a query string; of one that is given twice, the last.

    `TOPIC` may be given more than once: `topics_of`.

    Raises:
        UsageError: it has a parameter that is not allowed; the sentence names it.
    """
    try:
        given = parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict")
    except ValueError as error:  # UnicodeDecodeError is one
        raise UsageError("the query is not understood: it has too many parameters, or is not UTF-8") from error
    for name in given:
        if name not in allowed:
            raise no_such_parameter(name, allowed)
    return {name: values[-1] for name, values in given.items()}


def no_such_parameter(name: str, allowed: Collection[str]) -> UsageError:
    """A parameter that is none of those that there are."""
    there = f"there are {', '.join(allowed)}" if allowed else "there are none"
    return UsageError(f"{name[:50]!r} is no parameter here; {there}")


def no_such_word(name: str, value: str, words: Collection[str]) -> UsageError:
    """A parameter is none of these words, of which a few are named, and the one that may have been meant."""
    near = get_close_matches(value, words, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return UsageError(f"{name} is not one of {format_list([*words], _MOST_NAMED)}{meant}")


def filter_of(given: Mapping[str, str]) -> str:
    """The parameter ``filter``. Raises UsageError if it is too long."""
    text = given.get("filter", "")
    if len(text) > LONGEST_FILTER:
        raise UsageError(f"filter is longer than {LONGEST_FILTER} characters")
    return text


def offset_of(given: Mapping[str, str]) -> int:
    """The parameter ``offset``. Raises UsageError if it is not a number of rows."""
    return number_of(given, "offset", 0, 0, _LARGEST_OFFSET)


def number_of(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A parameter that is a whole number. Raises UsageError if it is none, or out of bounds."""
    text = given.get(name, str(default))
    digits = text.lstrip("0") or "0"  # Python refuses to convert thousands of digits
    if not (text.isascii() and text.isdigit() and len(digits) <= len(str(most)) and least <= int(digits) <= most):
        raise UsageError(f"{name} is not a whole number from {least} to {most:,}")
    return int(digits)


def limit_of(given: Mapping[str, str], default: int = DEFAULT_LIMIT, largest: int = LARGEST_LIMIT) -> int:
    """The parameter ``limit``. Raises UsageError if it is not a number of rows, from 1 to ``largest``."""
    return number_of(given, "limit", default, 1, largest)


def topics_of(query: str) -> frozenset[str]:
    """The topics that a query names, whole; none for all."""
    return frozenset(parse_qs(query, keep_blank_values=True).get(TOPIC, ()))


def words_of(given: Mapping[str, str], name: str, words: Sequence[str]) -> frozenset[str]:
    """A parameter that is some of these words, with commas. Raises UsageError if it is none, or has another one."""
    some = frozenset(given[name].split(","))
    if not some <= {*words}:
        raise UsageError(f"{name} is not one or more of {', '.join(words)}, with commas")
    return some


def flag_of(given: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """A parameter that is true or false. Raises UsageError if it is neither."""
    if given.get(name, "") not in ("", "true", "false"):
        raise UsageError(f"{name} is not true or false")
    return given[name] == "true" if given.get(name) else default


def cut(sheet: Sheet, request: PageRequest) -> PageRows:
    """The rows of a page, in their order. Rows whose value is not known come last in either order."""
    rows = sheet.natural
    if request.topics:
        rows = rows[np.fromiter((topic in request.topics for topic in sheet.topics), np.bool_, len(sheet.topics))[rows]]
    for name, words in request.chosen:
        rows = rows[np.fromiter((word in words for word in sheet.words[name]), np.bool_, len(sheet.words[name]))[rows]]
    if request.filter:
        wanted = request.filter.casefold()
        matching = np.fromiter((wanted in text.casefold() for text in sheet.texts), np.bool_, len(sheet.texts))
        rows = rows[matching[rows]]
    if request.sort in sheet.columns:
        values = sheet.columns[request.sort][rows]
        known = ~(values < 0) & ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
        keys = np.where(known, -values if request.order == DESC else values, 0)
        rows = rows[np.lexsort((keys, ~known))]  # a stable order, the last key first
    elif request.order == DESC:  # by topic and partition, which is the natural order
        rows = rows[::-1]
    items = rows[request.offset : request.offset + request.limit].tolist()
    return PageRows(request=request, items=items, matched=len(rows), total=len(sheet.natural))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """All rows of a listing, as columns."""

    columns: Mapping[str, NDArray[Any]]  # numbers by which it can be sorted, a negative one is not known
    texts: Sequence[str]  # what a filter is looked for in, of each row
    natural: Longs  # all rows in the order that decides where the column does not
    topics: Sequence[str] = ()  # of each row
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of each row, by the names of the fields by which rows can be chosen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageRows:
    """The rows of a page, as it was requested: of ``matched`` that hold the filter's text, of ``total``."""

    request: PageRequest
    items: list[int]
    matched: int
    total: int

    def page(self, kind: Callable[..., P], at_ms: int, rows: Sequence[PublicMessage], **others: object) -> P:
        """The message with these rows; ``others``: the fields that only this kind has."""
        request = self.request
        place = {"total": self.total, "matched": self.matched, "offset": request.offset}
        return kind(at_ms=at_ms, **place, sort=request.sort, order=request.order, rows=rows, **others)


def worst_first(place: Longs, natural: Longs, then: NDArray[Any]) -> Longs:
    """Numbers by which rows are sorted: those with the lowest place come first, and of one place those with the least of ``then``.

    Args:
        place: of the kind of what is wrong with each row, -1 for nothing.
        natural: see `Sheet`.
    """
    key = np.where(place < 0, _LAST, place)[natural]
    ordered = natural[np.lexsort((then[natural], key))]
    ranked = np.empty(len(natural), np.int64)
    ranked[ordered] = np.arange(len(natural))
    return ranked


def natural_order(topics: Sequence[str], partitions: Longs, brokers: Longs, last: Longs | None = None) -> Longs:
    """Rows by topic, partition and broker; then by ``last``."""
    more = () if last is None else (last,)
    order: Longs = np.lexsort((*more, brokers, partitions, ranks(topics)))
    return order
