"""How many of its seeds a test takes: a few, and all of them under ``HYPOTHESIS_PROFILE=exhaustive``."""

import os
from collections.abc import Sequence
from typing import TypeVar

EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"

Seed = TypeVar("Seed")


def seeds(few: Sequence[Seed], every: Sequence[Seed]) -> Sequence[Seed]:
    return every if EXHAUSTIVE else few
