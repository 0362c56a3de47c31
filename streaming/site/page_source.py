"""What the page is made from: the messages of `streaming.protocol`, each as of now."""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.api.state import State
from streaming.protocol.cost_json import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """Makes messages."""

    state: State
    cost: Callable[[], Cost]
