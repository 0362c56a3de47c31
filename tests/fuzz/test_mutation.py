"""The long run's damaged bytes, and that it finds what a parser does not survive."""

import random

import pytest

from tests.fuzz import __main__ as program
from tests.fuzz.mutation import mutated
from tests.fuzz.seeds import Parser


def test_one_seed_makes_the_same_bytes_again_and_they_differ_from_what_was_sound() -> None:
    sound = bytes(range(64))
    first, again = ([mutated(sound, sound, random.Random(chance)) for chance in range(50)] for _ in range(2))
    assert first == again
    assert sum(each != sound for each in first) > 40


def test_a_run_ends_with_what_a_parser_did_not_survive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def parse(data: bytes) -> object:
        return 1 // data[-1] if data else None

    monkeypatch.setattr(program, "PARSERS", (Parser("divides", parse, (b"\1\2\3",)),))
    assert program.main(1, seed=1) == 1
    stated = capsys.readouterr().out
    assert "seed 1, 1 minutes" in stated
    (failed,) = [line for line in stated.splitlines() if "FAILED" in line]
    assert bytes.fromhex(failed.split()[-1])[-1] == 0
