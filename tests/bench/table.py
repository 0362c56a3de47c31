"""One way to print a table."""

from collections.abc import Sequence


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under a title: the first column to the left, the others, numbers, to the right."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    print(f"\n{title}\n")
    for row in (heads, ["-" * width for width in widths], *rows):
        first, *others = (f"{cell:{'<' if column == 0 else '>'}{widths[column]}}" for column, cell in enumerate(row))
        print("  " + "  ".join((first, *others)).rstrip())
    print(flush=True)
