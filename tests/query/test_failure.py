"""One line for a failure."""

import pytest

from streaming.query.failure import reason


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[CONDITION] something\n  at x.y(Z.scala:1)", "[CONDITION] something"),
        (
            "[X] y\nTraceback\n  File\nValueError: a\nstreaming.errors.FormatError: bad magic\n\tat java",
            "streaming.errors.FormatError: bad magic",
        ),
        (
            "An error occurred while calling o1.getResult.\n: a.B: y\n\tat c.D\n"
            "Caused by: e.F: z\n\tat g.H\nCaused by: i.J: file k is cut off",
            "i.J: file k is cut off",
        ),
        (
            "An error occurred while calling o1.getResult.\n: a.B: [CANNOT_X.Y] the state\n\tat c.D\n"
            "Caused by: e.F: z\n\tat g.H\nCaused by: java.io.EOFException",
            "a.B: [CANNOT_X.Y] the state (java.io.EOFException)",
        ),
        (
            "An error occurred while calling o1.getResult.\n: a.B: y\nCaused by: e.F: [CANNOT_X] the state",
            "e.F: [CANNOT_X] the state",
        ),
        ("An error occurred while calling o1.getResult.", "An error occurred while calling o1.getResult."),
        ("[CONDITION] something\nCaused by: i.J: k", "[CONDITION] something"),
        ("", ""),
    ],
)
def test_reason_is_the_last_thing_raised_else_the_first_line(text: str, line: str) -> None:
    assert reason(text) == line
