"""Prints what CHANGELOG.md has of a version, as the notes of its release: ``python -m install.release.notes VERSION < CHANGELOG.md``."""

import re
import sys

_HEADING = re.compile(r"(?m)^## (?P<version>\S+)(?: \((?P<date>[^)]+)\))?$")
_LINK = re.compile(r"\[(?P<text>[^]]+)\]\((?!https?:)(?P<file>[^)#]+)[^)]*\)")


def notes(changelog: str, version: str) -> tuple[str, str | None]:
    """What is below the version's heading, and what the heading has in brackets: a date or ``unreleased``.

    Links to files of the checkout are names of these: whoever has the notes has the files in the sdist alone.

    Raises:
        ValueError: there is no such heading, or nothing below it.
    """
    headings = list(_HEADING.finditer(changelog))
    for number, heading in enumerate(headings):
        if heading["version"] == version:
            ends = headings[number + 1].start() if number + 1 < len(headings) else len(changelog)
            text = _LINK.sub(_named, changelog[heading.end() : ends].strip())
            if text:
                return f"{text}\n", heading["date"]
    raise ValueError(f"CHANGELOG.md has nothing of {version}: write what changed below a line '## {version} (DATE)'")


def _named(link: re.Match[str]) -> str:
    file = f"`{link['file']}`"
    return file if link["text"] == link["file"] else f"{link['text']} ({file})"


def main(version: str) -> int:
    """Print them. Status 2 if there are none."""
    try:
        text, date = notes(sys.stdin.read(), version)
    except ValueError as error:
        sys.stderr.write(f"release: {error}\n")
        return 2
    if date is None or not date[0].isdigit():
        sys.stderr.write(f"release: CHANGELOG.md has no date for {version} yet: write it there before you publish\n")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
