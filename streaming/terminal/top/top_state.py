"""What a screen is made of: where the user is, what was answered last, and whether that is still so. Nothing here knows a clock."""

from dataclasses import dataclass, replace

from streaming.broker.protocol.status_json import Problem, Status
from streaming.terminal.top.questions import VIEWS, Content, DetailAnswer, DetailQuestion, ListName, ListQuestion, Question, Row, Rows

INTERVALS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds between two answers that ``+`` and ``-`` choose from."""

_MARGIN = 50
"""Rows above and below the visible ones that are asked for, too, so that scrolling waits for no answer."""

_LATE_ANSWERS, _LATE_SECONDS = 3, 5.0
"""After so many intervals and seconds more without an answer, the last one is old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the user is in one view."""

    filter: str = ""
    use: str = ""  # as for `ListQuestion`
    sort: str = ""
    descending: bool = False
    cursor: int = 0  # the chosen one, counted from 0 over all that match
    first: int = 0  # the first visible row
    held: str = ""  # the key of the chosen row. The cursor stays with it when the order changes; "" stays at the top


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A thing that is shown in detail: ``problem`` is its key, else ``subject`` is what was asked for."""

    problem: str = ""
    subject: DetailQuestion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenState:
    """Everything that is on the screen, and what a key acts on.

    ``now``, ``answered``: seconds of one steady clock, of the last tick and of the last answer. ``to_copy``, ``again``: what a key asked
    for; the caller that does it clears it.
    """

    source: str
    view: ListName = ListName.PROBLEMS
    places: tuple[Place, ...] = (Place(),) * len(VIEWS)
    opened: tuple[Opened, ...] = ()
    line: int = 0  # the first visible line of a detail or of the help
    helping: bool = False
    typing: bool = False
    paused: bool = False
    relative: bool = True
    every: float = 2.0  # seconds between answers, 0 for none unless asked for
    width: int = 80
    height: int = 24
    now: float = 0.0
    answered: float = -1.0
    status: Status | None = None
    content: Content | None = None
    error: str = ""  # why there is none since, "" if the last question was answered
    message: tuple[str, ...] = ()  # a sentence at the bottom until the next key, and a command
    to_copy: str = ""
    again: bool = False
    over: bool = False

    @property
    def place(self) -> Place:
        """Where the user is in the present view."""
        return self.places[VIEWS.index(self.view)]

    def with_place(self, place: Place) -> "ScreenState":
        """The same with another place in the present view."""
        index = VIEWS.index(self.view)
        return replace(self, places=(*self.places[:index], place, *self.places[index + 1 :]))

    def all_of(self) -> "ScreenState":
        """The same without what leaves rows of the present view out."""
        place = self.place
        return self.with_place(replace(place, filter="", use="", cursor=0, first=0, held="")) if place.filter or place.use else self

    @property
    def rows(self) -> Rows | None:
        """The rows of the present view, None if they are not there (yet)."""
        return self.content if isinstance(self.content, Rows) and self.content.question.view is self.view else None

    @property
    def found(self) -> DetailAnswer | None:
        """The detail that is opened, None if it is not there yet."""
        subject = self.opened[-1].subject if self.opened else None
        return self.content if isinstance(self.content, DetailAnswer) and self.content.question == subject else None

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        rows = self.rows
        index = self.place.cursor - rows.offset if rows else -1
        return rows.rows[index] if rows and 0 <= index < len(rows.rows) else None

    @property
    def waits(self) -> bool:
        """Whether what is shown is not what was asked for last: another order, another part of the list."""
        return self.content is None or _without_limit(self.content.question) != _without_limit(question(self))

    @property
    def is_old(self) -> bool:
        """Whether the last answer does not say how it is now."""
        if self.status is None or self.paused:
            return False
        return bool(self.error) or (self.every > 0 and self.now - self.answered > _LATE_ANSWERS * self.every + _LATE_SECONDS)


def _without_limit(wanted: Question) -> Question:
    return replace(wanted, limit=0) if isinstance(wanted, ListQuestion) else wanted


def question(state: ScreenState) -> Question:
    """What has to be asked for this screen. The part of a list changes in steps, so that not every key asks again."""
    if state.opened and (subject := state.opened[-1].subject) is not None:
        return subject
    place = state.place
    return ListQuestion(
        view=state.view,
        sort=place.sort,
        descending=place.descending,
        filter=place.filter,
        use=place.use,
        offset=max(0, place.first - _MARGIN) // _MARGIN * _MARGIN,
        limit=min(1000, state.height + 3 * _MARGIN),
    )


def key_of(row: Row) -> str:
    """What makes a row the same one in the next answer."""
    if isinstance(row, Problem):
        return row.id or f"{row.kind} {row.broker} {row.topic}-{row.partition} {row.group} {row.log_dir} {row.agent}"
    fields = ("broker", "topic", "partition", "producer_id", "first_offset", "group", "kind", "at_ms", "problem")
    return " ".join(str(getattr(row, field, "")) for field in fields)
