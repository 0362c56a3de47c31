"""Property tests take the same examples in every run, whatever else has run in their process."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def examples() -> list[list[int]]:
    taken: list[list[int]] = []

    @settings(max_examples=20, derandomize=True, database=None)
    @given(st.lists(st.integers(), min_size=40, max_size=40))
    def take(numbers: list[int]) -> None:
        taken.append(numbers)

    take()
    return taken


@pytest.mark.skipif(not settings.default.derandomize, reason="other examples in every run are asked for")
def test_modules_that_were_loaded_in_between_change_none(tmp_path: Path) -> None:
    before = examples()
    path = tmp_path / "loaded_in_between.py"
    path.write_text(f"NUMBERS = {list(range(10_000, 10_100))}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, path.stem, module)
        spec.loader.exec_module(module)
        after = examples()
    assert after == before
