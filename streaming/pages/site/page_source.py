"""What the page is made from: the messages of `streaming.broker.protocol`, each as of now."""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.broker.protocol.cost_json import Cost
from streaming.pages.api.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """Makes messages."""

    state: State
    cost: Callable[[], Cost]
