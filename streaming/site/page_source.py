"""What the page is made from: the messages of `streaming.protocol`, each as of now."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streaming.api.state import State
from streaming.protocol.cost_json import Cost
from streaming.protocol.group_json import GroupDetail, GroupSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """Makes messages. ``groups``: all consumer groups, None if nothing is known of them yet; ``group``: one by its name, None if none."""

    state: State
    groups: Callable[[], Sequence[GroupSummary] | None]
    group: Callable[[str], GroupDetail | None]
    cost: Callable[[], Cost]
