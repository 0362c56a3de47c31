"""Samples of pages as promtool reads them."""

from tests.month.samples import Recording
from tests.month.streams import START


def recorded(*pages: list[str]) -> dict[str, str]:
    recording = Recording("segtail")
    for page in pages:
        recording.page(iter(page))
    return {each["series"]: each["values"] for each in recording.input_series()}


OWN = 'job="segtail",instance="segtail:9712"'


def test_what_is_steady_or_grows_steadily_is_one_word() -> None:
    found = recorded(*([f"up {1}", f'x{{a="b"}} {5 * number}'] for number in range(4)))
    assert found == {f"up{{{OWN}}}": "1.0+0x3", f'x{{a="b",{OWN}}}': "0.0+5x3"}


def test_a_step_begins_a_word() -> None:
    assert recorded(["x 1"], ["x 1"], ["x 7"], ["x 6"], ["x 9.5"]) == {f"x{{{OWN}}}": "1.0+0x1 7.0-1x1 9.5"}


def test_what_a_page_lacks_is_stale_from_then_on_until_it_returns() -> None:
    found = recorded(["up 1"], ["up 1", "x 1"], ["up 0"], ["up 0"], ["up 1", "x 1"], ["up 1"])
    assert found[f"x{{{OWN}}}"] == "stale 1.0 stale _x1 1.0 stale"


def test_times_count_from_the_first_page() -> None:
    recording = Recording("segtail", 100)
    recording.page(iter([f"x_timestamp_seconds {START + 90.5}", "x 7"]))
    assert [each["values"] for each in recording.input_series()] == ["-9.5", "7.0"]
    assert recorded([f"x_timestamp_seconds {START + 90.5}"]) == {f"x_timestamp_seconds{{{OWN}}}": "90.5"}
