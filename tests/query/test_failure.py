"""One line for a failure."""

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from streaming.spark.query.query import error_text, reason, reason_in
from tests.ports import free_ports


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
    assert reason_in(text) == line


def test_an_exception_of_a_jvm_that_is_gone_is_reported_by_what_was_called() -> None:
    """py4j asks the JVM for the text, each time."""
    (nobody,) = free_ports(1)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=nobody))
    error = Py4JJavaError("An error occurred while calling o44.stop.\n", JavaObject("o45", gateway._gateway_client))
    with pytest.raises((Py4JNetworkError, OSError)):
        str(error)
    assert error_text(error) == reason(error) == "An error occurred while calling o44.stop."
    assert error_text(Py4JNetworkError("Answer from Java side is empty")) == "Answer from Java side is empty"
