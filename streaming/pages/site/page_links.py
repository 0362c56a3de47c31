"""Where each view of the page is, with names percent-encoded, and what a reader asks of its table in an address."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from streaming.broker.protocol.json_message import ASC, DESC
from streaming.broker.protocol.status_json import SEVERITIES
from streaming.errors import UsageError
from streaming.pages.api.paging import no_such_parameter, no_such_word

HOME, PARTITIONS, TRANSACTIONS, RETENTION, GROUPS, COST = "/", "/partitions", "/transactions", "/retention", "/groups", "/cost"
EVENTS = "/events"
TOPICS, BROKERS, DISKS, SEARCH = "/topics", "/brokers", "/disks", "/search"
RUNBOOKS = "/runbooks"
STATIC = "/static/"

_DOTS = (".", "..", "")
"""Names that are no segment of a path: browsers take these away, encoded or not."""

_MOST_DIGITS = 13  # those of Unix milliseconds
_MOST_PARAMETERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The parameters of an address. The last one counts if one comes twice."""

    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def filter(self) -> str:
        """A text that rows hold."""
        return self.values.get("filter", "")

    @property
    def offset(self) -> int:
        """The number of the first row."""
        return self._number("offset", 0)

    def word(self, name: str, words: Collection[str], otherwise: str) -> str:
        """One of some words.

        Raises:
            UsageError: it is another one.
        """
        value = self.values.get(name, "") or otherwise
        if value not in words:
            raise no_such_word(name, value, words)
        return value

    def order(self, otherwise: str) -> str:
        """The direction of sorting."""
        return self.word("order", (ASC, DESC), otherwise)

    @property
    def severity(self) -> str:
        """A severity, "" for all."""
        return self.word("severity", ("", *SEVERITIES), "")

    def require(self, allowed: Collection[str]) -> None:
        """Check that there are only these. Raises UsageError, as the API does: there is another one."""
        for name in self.values:
            if name not in allowed:
                raise no_such_parameter(name, allowed)

    def given(self, *names: str) -> dict[str, str]:
        """Those of some parameters that are given."""
        return {name: self.values[name] for name in names if self.values.get(name)}

    def text(self, *names: str) -> str:
        """The same as they are written in an address."""
        return urlencode(self.given(*names))

    def number(self, name: str) -> int:
        """A number from 0 on.

        Raises:
            UsageError: it is none.
        """
        return self._number(name, -1)

    def _number(self, name: str, otherwise: int) -> int:
        text = self.values.get(name, "")
        if not text and otherwise >= 0:
            return otherwise
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise UsageError(f"{name} is not a number from 0 on, of {_MOST_DIGITS} digits at most")
        return int(text)


def topic_link(topic: str) -> str:
    """The view of one topic."""
    return link(TOPICS, {"topic": topic}) if topic in _DOTS else f"{TOPICS}/{_encode(topic)}"


def link(path: str, parameters: Mapping[str, str]) -> str:
    """A path with parameters."""
    return f"{path}?{urlencode(parameters, errors='replace')}" if parameters else path


def _encode(name: str) -> str:
    return quote(name, safe="", errors="replace")


def broker_link(broker: int) -> str:
    """The row of one broker."""
    return link(BROKERS, {"filter": f"broker {broker} "})


def log_dir_link(log_dir: str) -> str:
    """The row of a log dir, on each broker that has one with this path."""
    return link(DISKS, {"filter": log_dir})


def partition_link(topic: str, partition: int) -> str:
    """The view of one partition."""
    if topic in _DOTS:
        return link(PARTITIONS, {"topic": topic, "partition": str(partition)})
    return f"{PARTITIONS}/{_encode(topic)}/{partition}"


def group_link(group: str) -> str:
    """The view of one consumer group."""
    return link(GROUPS, {"group": group}) if group in _DOTS else f"{GROUPS}/{_encode(group)}"


def parse_query(text: str) -> Query:
    """The parameters of what comes after "?".

    What somebody asks of a table in an address: sort, order, filter, offset. What is not understood is named, and never guessed.

    Raises:
        UsageError: there are too many, or they are not UTF-8.
    """
    try:
        return Query(values=dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)))
    except ValueError as error:
        raise UsageError("the parameters cannot be read: they are too many, or not UTF-8") from error
