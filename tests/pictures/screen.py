"""A screen of ``segtail top`` as HTML: its own lines and styles, in the colours of a dark terminal."""

from collections.abc import Iterator
from html import escape

from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from streaming.pages.api.state import State
from streaming.terminal.top.answer_sources import DirSource
from streaming.terminal.top.frame import drawn
from streaming.terminal.top.top_state import ScreenState, question
from streaming.terminal.top.watching import answered

GROUND, INK = (24, 26, 31), (222, 222, 222)
_TANGO = ((85, 87, 83), (239, 41, 41), (138, 226, 52), (252, 233, 79), (114, 159, 207), (173, 127, 168), (52, 226, 226), (238, 238, 236))
COLOURS = TerminalTheme(GROUND, INK, list(_TANGO))
"""The bright ones of Tango, as many terminals have them."""

_HTML = """<!doctype html><html lang="en"><meta charset="utf-8"><title>segtail top</title><style>body {{ margin: 0 }}
pre {{ margin: 0; padding: 14px 16px; display: inline-block; font: 15px/1.3 "DejaVu Sans Mono", monospace; {ground} }}</style>
<pre>{lines}</pre></html>
"""


def screen_html(state: State, width: int, height: int) -> str:
    """The first screen over log dirs that were read, of so many columns and lines."""
    source = DirSource(lambda: state)
    screen = ScreenState(source=source.name, every=0.0, width=width, height=height)
    screen = answered(screen, source.ask(question(screen), again=False), 0.0)
    console = Console(color_system="truecolor", width=width, height=height)
    lines = ("".join(_pieces(console, line)) for line in drawn(screen).lines)
    return _HTML.format(ground=_css(GROUND, INK), lines="\n".join(lines))


def _pieces(console: Console, line: Text) -> Iterator[str]:
    for segment in filter(lambda each: each.text != "\n", console.render(line)):
        style = segment.style or Style()
        ink, ground = _rgb(style.color) or INK, _rgb(style.bgcolor) or GROUND
        if style.dim:
            ink = tuple((one + other) // 2 for one, other in zip(ink, ground, strict=True))
        pair = (ink, ground) if style.reverse else (ground, ink)
        looks = _css(*pair) + ("; font-weight: bold" if style.bold else "") + ("; text-decoration: underline" if style.underline else "")
        yield f'<span style="{looks}">{escape(segment.text)}</span>'


def _rgb(color: Color | None) -> tuple[int, ...] | None:
    return None if color is None or color.is_default else tuple(color.get_truecolor(COLOURS))


def _css(ground: tuple[int, ...], ink: tuple[int, ...]) -> str:
    return f"background: rgb{ground}; color: rgb{ink}"
