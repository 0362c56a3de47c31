"""No line of a document or a message installs by a name that nobody has published: who took the name would run code beside brokers."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.tables import each_row

ROOT = Path(__file__).parents[2]
OWN = r"(?:kafka[-_]segment[-_]tail|segtail)"
PACKAGES = re.compile(
    r"\b(?:pip\d?|uv pip|uv tool|pipx|apt|apt-get|dnf|yum|apk|brew|conda) +(?:-\S+ +)*(?:install|download|run)\b|\buvx\b|\buv add\b"
)
NAME = re.compile(rf"""['"`(]*{OWN}(?:\[[\w,]+\])?(?:[=<>~].*)?['"`.,;:)]*""")
OTHERS = re.compile(
    rf"""
    \bhelm\ +repo\ +add\b | \bhelm\ +(?:install|upgrade|pull)\b.*(?:oci://|\ {OWN}/{OWN})  # a chart of a repository
    | \b(?:docker|podman)\ +(?:pull|run)\b.*\ {OWN}(?=[:@ ]|$)(?!:/)  # an image of a registry
    | ^\ *(?:image|repository):\ +['"]?{OWN}\b | \bFROM\ +{OWN}\b
    | {OWN}\[(?:spark|java)
    """,
    re.VERBOSE,
)
TEXT = {".md", ".gotmpl", ".txt", ".py", ".yaml", ".yml", ".tpl", ".service", ".toml", ".sh", ".1", ".html", ".json", ""}


def lines() -> Iterator[tuple[str, str]]:
    """Each file that is committed, and its text."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, tracked):
        path = ROOT / name
        if path.suffix in TEXT and path.is_file() and not name.startswith("tests/"):
            yield name, path.read_text(encoding="utf-8")


def installs_a_name(line: str) -> bool:
    """Whether it has something installed, or run, that is found by a name of this project. A path is no name."""
    if OTHERS.search(line):
        return True
    installer = PACKAGES.search(line)
    if installer is None:
        return False
    words = line[installer.end() :].partition(" #")[0].split()
    if {"--from", "--spec"}.intersection(words[:-1]):
        words = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("--from", "--spec")]
    return any(NAME.fullmatch(word) for word in words)


def test_nothing_is_installed_by_a_name_that_is_nobodys() -> None:
    found = [f"{name}: {line.strip()}" for name, text in lines() for line in text.splitlines() if installs_a_name(line)]
    assert found == []


@each_row(
    "line",
    [
        "pip install kafka-segment-tail",
        "pip install 'kafka-segment-tail[spark]'",
        "pip install --user kafka_segment_tail",
        "uvx kafka-segment-tail retention --log-dirs /d",
        "pipx run kafka-segment-tail",
        "uv tool install segtail",
        "sudo apt-get install -y segtail",
        "helm repo add segtail https://example.com",
        "helm install segtail segtail/segtail",
        "helm install segtail oci://example.com/segtail",
        "docker run segtail run --log-dirs /kafka",
        "podman pull segtail:0.1.0",
        "  repository: segtail",
        "  image: segtail:0.1.0",
        "FROM segtail",
        "or install kafka-segment-tail[java]",
    ],
)
def test_such_a_line_would_be_found(line: str) -> None:
    assert installs_a_name(line)


@each_row(
    "line",
    [
        "pip install '.[spark]'",
        "pip install './dist/kafka_segment_tail-0.1.0-py3-none-any.whl[spark]'",
        "uvx --from ./dist/kafka_segment_tail-0.1.0-py3-none-any.whl segtail retention",
        "pipx run --spec ./dist/kafka_segment_tail-0.1.0-py3-none-any.whl segtail retention",
        "apt install ./build/deb/segtail_0.1.0_amd64.deb     # as root",
        "helm install segtail helm/segtail --namespace kafka-watch",
        "podman run -v segtail:/var/lib/segtail localhost/segtail run --log-dirs /kafka",
        "  repository: localhost/segtail",
        "systemctl enable --now segtail-agent",
    ],
)
def test_what_works_from_a_checkout_is_none(line: str) -> None:
    assert not installs_a_name(line)
