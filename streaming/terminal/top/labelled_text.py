"""Labels with texts below each other, wrapped to a width, each line with the command that belongs to it."""

from collections.abc import Iterable
from dataclasses import dataclass

from streaming.pages.listings.cells import plain, shell_lines, wrapped

_LABEL = 14
_NARROW = 50
"""Below this width a text begins below its label."""


@dataclass(frozen=True, slots=True)
class DetailLine:
    """A line of a detail. ``style``: one of rich's, "" for none."""

    text: str
    style: str = ""


def title(text: str, width: int) -> list[DetailLine]:
    """What follows is about this."""
    return [DetailLine(""), *(DetailLine(line, "bold") for line in wrapped(plain(text), width))]


def labelled(label: str, text: str, width: int) -> list[DetailLine]:
    """A text with its label before it, or above it in a narrow terminal."""
    if width < _NARROW:
        return [DetailLine(f"{label}:"), *(DetailLine(f"  {line}") for line in wrapped(plain(text), max(2, width - 2)))]
    first, *rest = wrapped(plain(text), width - _LABEL)
    return [DetailLine(f"{label:<{_LABEL - 1}} {first}"), *(DetailLine(f"{'':<{_LABEL}}{line}") for line in rest)]


def all_labelled(pairs: Iterable[tuple[str, str]], width: int) -> list[DetailLine]:
    """Those of the labelled texts that are not empty."""
    return [line for label, text in pairs if text for line in labelled(label, text, width)]


def command_lines(command: str, reason: str, width: int, advice: str = "") -> list[DetailLine]:
    """A command from the left edge on, in lines that a shell reads as one if they are marked by hand; or why there is none.

    Args:
        advice: sentences to be read before it is run.
    """
    before = [DetailLine(line) for line in wrapped(plain(advice), width)] if advice else []
    if command:
        return [*before, *(DetailLine(piece, "bold") for piece in shell_lines(plain(command), width))]
    return [*before, *(DetailLine(line) for line in wrapped(f"no command: {plain(reason)}", width))] if reason else before
