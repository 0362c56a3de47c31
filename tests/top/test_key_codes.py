"""The bytes of a terminal, and the keys in them."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.terminal.top.raw_terminal import decode
from tests.tables import each_row

SEQUENCES = {
    b"\x1b[A": "up", b"\x1bOB": "down", b"\x1b[5~": "pageup", b"\x1b[6~": "pagedown", b"\x1b[H": "home", b"\x1bOF": "end",
    b"\t": "tab", b"\x1b[Z": "backtab", b"\r": "enter", b"\x7f": "backspace", b"q": "q", "ü".encode(): "ü", "語".encode(): "語",
}  # fmt: skip


@each_row(("data", "key"), SEQUENCES.items())
def test_a_key_is_known_by_its_bytes(data: bytes, key: str) -> None:
    assert decode(data) == ((key,), b"")


@each_row("data", [b"\x1b[1;5A", b"\x1b[200~", b"\x1b[?1;2c", b"\x1b[24~", b"\x01", b"\x1bOP"])
def test_a_key_that_has_no_meaning_is_none(data: bytes) -> None:
    assert decode(data, final=True) == ((), b"")


def test_an_escape_waits_for_what_may_follow() -> None:
    assert decode(b"\x1b") == ((), b"\x1b")
    assert decode(b"\x1b", final=True) == (("esc",), b"")
    assert decode(b"\x1b\x1b[A") == (("esc", "up"), b"")
    assert decode(b"\x1bq") == (("esc", "q"), b"")
    assert decode(b"\x1b[", final=True) == ((), b"")
    assert decode(b"\x1bO", final=True) == (("esc", "O"), b"")


@given(st.lists(st.sampled_from(list(SEQUENCES))), st.data())
def test_keys_are_the_same_however_their_bytes_arrive(pressed: list[bytes], data: st.DataObject) -> None:
    sent = b"".join(pressed)
    keys, rest = [], b""
    while sent:
        count = data.draw(st.integers(1, len(sent)))
        found, rest = decode(rest + sent[:count])
        keys += found
        sent = sent[count:]
    assert (keys, rest) == ([SEQUENCES[each] for each in pressed], b"")


@given(st.binary())
def test_any_bytes_are_keys_that_print_or_have_a_name(data: bytes) -> None:
    keys, rest = decode(data, final=True)
    assert rest == b""
    assert all(key.isprintable() and (len(key) == 1 or key.isalpha()) for key in keys)
