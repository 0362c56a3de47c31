"""``python -m tests.fuzz MINUTES [SEED]``: all parsers in turn, for so long; prints the inputs of each, and what it did not survive.

The same seed feeds the same inputs, so a failure comes again.
"""

import random
import sys
import time
import traceback
from dataclasses import dataclass

from streaming.errors import FormatError
from tests.fuzz.mutation import mutated
from tests.fuzz.seeds import PARSERS, Parser

_ROUND = 500
"""Inputs for one parser before it is the next one's turn."""


@dataclass
class _Result:
    inputs: int = 0
    refused: int = 0
    slowest: float = 0.0


def _feed(parser: Parser, result: _Result, chance: random.Random) -> bytes | None:
    """A round of one parser; returns the input that it did not survive."""
    for _ in range(_ROUND):
        data = mutated(chance.choice(parser.seeds), chance.choice(parser.seeds), chance)
        result.inputs += 1
        began = time.monotonic()
        try:
            parser.parse(data)
        except FormatError:
            result.refused += 1
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            traceback.print_exc()
            return data
        result.slowest = max(result.slowest, time.monotonic() - began)
    return None


def main(minutes: float, seed: int) -> int:
    ends = time.monotonic() + 60 * minutes
    results = {str(parser): _Result() for parser in PARSERS}
    failed: dict[str, bytes] = {}
    chances = {str(parser): random.Random(f"{seed} {parser}") for parser in PARSERS}
    while time.monotonic() < ends and len(failed) < len(PARSERS):
        for parser in PARSERS:
            name = str(parser)
            if name not in failed:
                data = _feed(parser, results[name], chances[name])
                if data is not None:
                    failed[name] = data
    print(f"seed {seed}, {minutes:g} minutes, {sum(result.inputs for result in results.values()):,} inputs")
    for name, result in results.items():
        print(f"{name:40} {result.inputs:>12,} inputs {result.refused:>12,} refused, slowest {result.slowest * 1000:.0f} ms")
    for name, data in failed.items():
        print(f"{name} FAILED at {data.hex()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000))
