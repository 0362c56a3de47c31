"""Writes frames to a terminal: only lines that have changed, in the colours that it has."""

from base64 import b64encode

from rich.console import Console
from rich.text import Text

from streaming.terminal.top.frame import Frame


class Painter:
    """Remembers what is on the screen. ``console`` says which colours there are, by the terminal and by NO_COLOR."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[str] = []

    def forget(self) -> None:
        """The screen holds something else now."""
        self._lines = []

    def changes(self, frame: Frame) -> str:
        """What has to be written so that the terminal shows this frame, with its cursor at the frame's row."""
        lines = [self._rendered(line) for line in frame.lines]
        pieces = [] if self._lines else ["\x1b[2J"]
        for number, line in enumerate(lines):
            if number >= len(self._lines) or self._lines[number] != line:
                pieces.append(f"\x1b[{number + 1};1H\x1b[2K{line}")
        self._lines = lines
        return f"{''.join(pieces)}\x1b[{frame.row + 1};1H"

    def _rendered(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()


def to_clipboard(text: str) -> str:
    """The control sequence that puts a text into the clipboard of the terminal, also over ssh (OSC 52)."""
    return f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07"
