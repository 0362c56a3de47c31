"""What all tests of the model share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _without_logs() -> Iterator[None]:
    """What is logged of thousands of faults is a good part of the time."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
