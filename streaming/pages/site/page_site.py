"""The page: the answer to a request for one of its views or assets, as HTML in which every value is escaped, whatever it holds.

Everything is made here, so that it works without a script.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from urllib.parse import unquote, urlencode

import cramjam
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streaming.broker.protocol.status_json import Cost, Status
from streaming.common.units import format_name
from streaming.common.web.messages import HttpRequest, Response
from streaming.errors import NotYetError, UsageError
from streaming.pages.api.state import State
from streaming.pages.site.detail_views import group_view, partition_view, topic_view
from streaming.pages.site.home_view import MOST_PROBLEMS, home
from streaming.pages.site.listing_views import (
    LIST_PARAMETERS,
    LIST_VIEWS,
    PARAMETERS,
    SearchView,
    cost_view,
    disks_view,
    event_view,
    search_view,
)
from streaming.pages.site.page_links import (
    COST,
    DISKS,
    EVENTS,
    GROUPS,
    HOME,
    PARTITIONS,
    RUNBOOKS,
    SEARCH,
    STATIC,
    TOPICS,
    Query,
    parse_query,
)
from streaming.pages.site.page_views import ErrorView, PageView
from streaming.pages.site.runbook_view import runbook_view
from streaming.pages.site.state_routes import no_cost

_SCRIPT = "text/javascript; charset=utf-8"
ASSETS = {"site.css": "text/css; charset=utf-8", "site.js": _SCRIPT, "readings.js": _SCRIPT, "icon.svg": "image/svg+xml"}

POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind} 'self'" for kind in ("style-src", "script-src", "img-src", "connect-src", "form-action")),
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing that comes from elsewhere, and nothing inline, is shown or run."""

PAGE_SECURED = {"Content-Security-Policy": POLICY}
"""In place of the policy of other answers."""

_KEPT = {**PAGE_SECURED, "Cache-Control": "private, max-age=31536000, immutable"}
"""An asset's path changes with its content, so that a browser may keep it."""

_ADDRESS = re.compile(r'(?<= )(href|src|action)="/')
"""An address of the page in a tag. Nowhere else is a quotation mark written as it is: in every value it is escaped."""

HTML_TYPE = "text/html; charset=utf-8"

_WORD_ENDS = re.compile(r"(?<=[._/:])|(?<=-)(?=[^0-9])")

REFRESH_SECONDS = 10
"""A browser asks for a view again so often; without a script three times as seldom, because that takes the reader's place on the page."""

STARTING_REFRESH_SECONDS = 2
"""So often while the job starts."""

_FEW_EVENTS = 8
"""So many changes are below the problems."""

_LISTS = {**LIST_VIEWS, EVENTS: event_view}
_OF_A_TABLE = ("sort", "order", "offset")
_PARAMETERS = {HOME: ("severity", "filter", "offset"), DISKS: PARAMETERS, SEARCH: ("q",), EVENTS: ("filter", "offset")}

_NAMES = {TOPICS: ("topic",), PARTITIONS: ("topic", "partition"), GROUPS: ("group",)}
"""Where a name that no path can hold is a parameter."""

_OF_ONE = ("topics", "partitions", "groups", "runbooks")
"""First segments of paths that go on with a name."""


class PageSite:
    """The views and assets of the page, by the paths of requests. Thread-safe.

    Args:
        cost: makes the message about what a scrape costs; None where nothing is scraped: then no page leads to it, or to metrics.
    """

    def __init__(self, state: State, cost: Callable[[], Cost] | None) -> None:
        self._state = state
        self._cost = cost

    def answer(self, request: HttpRequest) -> Response | None:
        """The answer to a request, None if its path is none of the page's."""
        if request.path.startswith(STATIC):
            return _packed(asset(request.path.removeprefix(STATIC)), request)
        segments = request.path.split("/")[1:]
        if not segments:  # the target "*", or none that begins with a slash
            return None
        if f"/{segments[0]}" not in (HOME, COST, DISKS, SEARCH, RUNBOOKS, *_LISTS) or (len(segments) > 1 and segments[0] not in _OF_ONE):
            return None
        return _packed(self._html(request, segments), request)

    def _html(self, request: HttpRequest, segments: list[str]) -> Response:
        status, code = self._state.status(), HTTPStatus.OK
        view: PageView
        try:
            query = parse_query(request.query)
            query.require(_parameters(request.path, segments, query))
            view = self._view(request.path, segments, query, status)
            if isinstance(view, SearchView) and view.only:
                return _moved(view.only)
        except NotYetError as error:
            view, code = _error(status, "Not known yet", f"{error}."), HTTPStatus.SERVICE_UNAVAILABLE
        except UsageError as error:
            view, code = _error(status, "That cannot be asked", f"{error}."), HTTPStatus.BAD_REQUEST
        except NotThereError as error:
            view, code = _error(status, "Not there", error.words), HTTPStatus.NOT_FOUND
        body = relative(_rendered(view, scraped=self._cost is not None), request.path).encode()
        return Response(status=code, content_type=HTML_TYPE, body=body, headers=PAGE_SECURED)

    def _view(self, path: str, segments: list[str], query: Query, status: Status) -> PageView:
        if path == HOME:
            asked = query.given("severity", "filter", "offset") | {"roots": "true", "limit": str(MOST_PROBLEMS)}
            problems = self._state.problems(urlencode(asked))
            return home(status, problems, self._state.events(f"limit={_FEW_EVENTS}"), query)
        if path == COST:
            return cost_view((self._cost or no_cost)(), status)
        if segments[0] == "runbooks" and len(segments) <= 2:
            return self._runbook(_decoded(segments[1]) if len(segments) > 1 else "", status)
        if path == DISKS:
            return disks_view(self._state.disk(query.text(*PARAMETERS)), query, status)
        if path == SEARCH:
            return search_view(self._state, query.values.get("q", ""), status)
        if path in (TOPICS, PARTITIONS, GROUPS) and not {"topic", "group"}.isdisjoint(query.values):
            return self._named(path, query, status)
        if path in _LISTS:
            return _LISTS[path](self._state, query, status)
        return self._one(segments, query, status)

    def _one(self, segments: list[str], query: Query, status: Status) -> PageView:
        names = [_decoded(each) for each in segments[1:]]
        if segments[0] == "groups" and len(names) == 1:
            return self._group(names[0], query, status)
        if segments[0] == "topics" and len(names) == 1:
            return self._topic(names[0], query, status)
        if segments[0] == "partitions" and len(names) == 2 and names[1].isascii() and names[1].isdigit() and len(names[1]) <= 10:
            return self._partition(names[0], int(names[1]), status)
        raise NotThereError(words="There is no such page.")

    def _runbook(self, name: str, status: Status) -> PageView:
        view = runbook_view(name, status)
        if view is None:
            raise NotThereError(words="There is no such runbook in this version.")
        return view

    def _named(self, path: str, query: Query, status: Status) -> PageView:
        """A name that no path can hold is a parameter."""
        if path == TOPICS:
            return self._topic(query.values.get("topic", ""), query, status)
        if "group" in query.values:
            return self._group(query.values["group"], query, status)
        return self._partition(query.values["topic"], query.number("partition"), status)

    def _topic(self, name: str, query: Query, status: Status) -> PageView:
        detail = self._state.topic(name)
        if detail is None:
            raise NotThereError(words="No partition of such a topic is watched: it may be deleted, or its brokers' agents not be asked.")
        return topic_view(detail, self._state.partitions, query, status)

    def _partition(self, topic: str, partition: int, status: Status) -> PageView:
        detail = self._state.partition(topic, partition)
        if detail is None:
            raise NotThereError(words="No such partition is watched: its topic may be deleted, or its broker's agent not be asked.")
        return partition_view(detail, status)

    def _group(self, name: str, query: Query, status: Status) -> PageView:
        detail = self._state.group(name)
        if detail is None:
            raise NotThereError(words="No such consumer group is known: its offsets may have expired.")
        return group_view(detail, query, status)


def _packed(answer: Response | None, request: HttpRequest) -> Response | None:
    if answer is None or not request.gzip:
        return answer
    return replace(answer, body=bytes(cramjam.gzip.compress(answer.body, 1)), gzip=True)


@cache
def asset(name: str) -> Response | None:
    """The answer to a request for an asset, None if there is none with this name."""
    if name not in ASSETS:
        return None
    return Response(status=HTTPStatus.OK, content_type=ASSETS[name], body=_content(name), headers=_KEPT)


def _content(name: str) -> bytes:
    return files("streaming.pages.site").joinpath("static", name).read_bytes()


def _parameters(path: str, segments: list[str], query: Query) -> tuple[str, ...]:
    """Those that the view at a path has."""
    if named := [each for each in _NAMES.get(path, ()) if each in query.values]:
        return (*named, *_OF_A_TABLE)
    if path in _LISTS:
        return _PARAMETERS.get(path, (*LIST_PARAMETERS, *_NAMES.get(path, ())))
    return _PARAMETERS.get(path, _OF_A_TABLE if segments[0] in ("topics", "groups") else ())


def _moved(address: str) -> Response:
    """From the search straight to the only match, relative as all addresses that leave; the search stays out of the way back."""
    return Response(status=HTTPStatus.SEE_OTHER, body=b"", headers={**PAGE_SECURED, "Location": f".{address}"})


def _error(status: Status, title: str, words: str) -> ErrorView:
    return ErrorView(title=title, here="", status=status, words=words)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotThereError(Exception):
    """What was asked for is not there; ``words`` is a sentence.

    Addresses as they leave: relative to the view, so that the page works below any path that a proxy takes away before the job is
    asked. Everywhere else an address begins with "/", the page itself, and is read and compared as that.
    """

    words: str


def relative(html: str, path: str) -> str:
    """The HTML of the view at ``path``, encoded as it was asked for, with all addresses of the page relative to that."""
    root = "../" * (path.count("/") - 1) or "./"
    return _ADDRESS.sub(rf'\1="{root}', html)


def _rendered(view: PageView, *, scraped: bool) -> str:
    """A view as HTML. ``scraped``: there are metrics."""
    name = type(view).__name__.removesuffix("View").lower()
    kind = f"{name} starting" if view.status.start is not None else name  # a script replaces a view of another kind as a whole
    refresh = REFRESH_SECONDS if view.status.start is None else STARTING_REFRESH_SECONDS
    return _environment().get_template(f"{name}.html").render(view=view, kind=kind, refresh=refresh, scraped=scraped)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("streaming.pages.site"),
        autoescape=True,  # everything, whatever a template is called
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_visible,
    )
    made.filters["name"] = format_name
    made.filters["parted"] = _parted
    made.globals["assets"] = {name: static_path(name) for name in ASSETS}
    return made


def _visible(value: object) -> object:
    """The net below the escaping of names: nothing that cannot be seen, or turns a line around, is sent."""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in value)


def _parted(name: str) -> Markup:
    """A name that is broken between its words, where it has to be, and not inside of one; the number of a partition stays with the last."""
    return Markup("<wbr>").join(str(_visible(each)) for each in _WORD_ENDS.split(name))


def static_path(name: str) -> str:
    """The path of an asset."""
    return f"{STATIC}{name}?v={sha256(_content(name)).hexdigest()[:12]}"


def _decoded(segment: str) -> str:
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise NotThereError(words="There is no such page: its address is not UTF-8.") from error
