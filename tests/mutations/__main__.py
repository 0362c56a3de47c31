"""``python -m tests.mutations``: changes one line at a time, in memory, and sees that a fast test fails for it.

Without arguments it tries the table; with ``--of streaming/rules --tests tests/rules`` changes that a seed draws. Exits with 1 if a change
of the table survived, with 2 if one is stale or tests fail without any change. Whether a drawn survivor tells of a reason that no test
holds is for a person to say: some changes change nothing.
"""

import argparse
import sys

from tests.mutations.mutant import StaleError, drawn, read_table
from tests.mutations.runner import BrokenTestsError, tried


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("word", nargs="*", help="of the table, only the lines that hold one of these words")
    parser.add_argument("--of", nargs="+", default=[], help="folders or files of streaming/ to draw changes from")
    parser.add_argument("--tests", nargs="+", default=[], help="files or folders of tests that are to find them")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--count", type=int, default=40)
    given = parser.parse_args(arguments)
    if bool(given.of) != bool(given.tests):
        parser.error("--of and --tests go together")
    try:
        table = [each for each in read_table() if not given.word or any(word in str(each) for word in given.word)] if not given.of else []
        mutants = drawn(given.of, given.count, given.seed) if given.of else table
        found = 0
        for result in tried(mutants, given.tests):
            found += bool(result.found)
            sys.stdout.write(f"{result.seconds:6.1f} s  {result.mutant}\n          {result.found or 'SURVIVED'}\n")
            sys.stdout.flush()
    except (StaleError, BrokenTestsError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{found} of {len(mutants)} changes fail a test\n")
    return int(not given.of and found < len(mutants))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
