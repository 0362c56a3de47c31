"""Tests of one module keep to one process, so that a world is unpacked once."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # the other conftest groups what has no group yet
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents and not any(map(item.get_closest_marker, ("first", "spark"))):
            item.add_marker(pytest.mark.xdist_group(f"recorded/{item.path.stem}"))
