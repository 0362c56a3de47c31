"""The keys in the bytes that a terminal sends: a character for itself, and names for the others."""

import codecs
import re

_NAMES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
    "\x1b[5~": "pageup", "\x1b[6~": "pagedown",
    "\x1b[H": "home", "\x1b[F": "end", "\x1bOH": "home", "\x1bOF": "end",
    "\x1b[1~": "home", "\x1b[4~": "end", "\x1b[7~": "home", "\x1b[8~": "end",
    "\x1b[Z": "backtab", "\t": "tab", "\r": "enter", "\n": "enter", "\x1bOM": "enter",
    "\x7f": "backspace", "\x08": "backspace", "\x15": "clear", "\x0c": "redraw", "\x1b": "esc",
    "\x02": "pageup", "\x06": "pagedown", "\x04": "pagedown", "\x10": "up", "\x0e": "down",
}  # fmt: skip
"""The sequences of xterm, and what other terminals send for the same keys."""

_ONE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]|\x1b(?=[^\[O])|[^\x1b]")
"""One key: a control sequence, whatever it is, or a character. A key with Alt is an escape and that key."""


def decode(data: bytes, *, final: bool = False) -> tuple[tuple[str, ...], bytes]:
    """Split bytes into keys, and what may be the beginning of one more.

    Args:
        final: nothing follows for now, so that an escape alone is the key ``esc``.

    Returns:
        The keys, a character or a name of several letters each; and the bytes to put before those that come next. Keys that have no
        meaning here are left out.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data, final)
    rest = decoder.getstate()[0]
    keys, position = [], 0
    while match := _ONE.match(text, position):
        keys.append(match[0])
        position = match.end()
    left = text[position:]
    if final:  # of a sequence that is not whole nothing is left, except for the two keys that look like the beginning of one
        keys, left = keys + {"\x1b": ["\x1b"], "\x1bO": ["\x1b", "O"]}.get(left, []), ""
    named = (_NAMES.get(each, each if len(each) == 1 and each.isprintable() else "") for each in keys)
    return tuple(each for each in named if each), left.encode() + rest
