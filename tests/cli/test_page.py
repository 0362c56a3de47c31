"""`segtail page`: a job's page, from log dirs and without a job."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.pages.api.state import State
from streaming.pages.site.state_server import StateServer
from streaming.terminal.offline.everything import read_everything
from tests.commands import run_command
from tests.docs.world import LOG_DIRS, NOW, ShownBroker
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import Segtail, segtail, until


@pytest.fixture(scope="module")
def dirs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("world")
    ShownBroker(root)
    return [root / each for each in LOG_DIRS]


def state_of(dirs: list[Path]) -> State:
    return read_everything(open_log_dirs(tuple(dirs)), Settings(), NOW)


@pytest.fixture
def server(dirs: list[Path]) -> Iterator[StateServer]:
    made = StateServer("127.0.0.1", 0, state_of(dirs))
    made.start()
    try:
        yield made
    finally:
        made.close()


def get(server: StateServer, path: str) -> str:
    with urlopen(f"{server.url}{path}", timeout=SECONDS) as answer:
        body: bytes = answer.read()
        return body.decode()


def status_of(server: StateServer, path: str) -> tuple[int, str]:
    with pytest.raises(HTTPError) as error:
        get(server, path)
    return error.value.code, error.value.read().decode()


def test_every_view_is_there_but_for_what_only_a_running_job_knows(server: StateServer) -> None:
    assert "Hanging transactions in topic payments" in get(server, "")
    for view, word in [("partitions", "payments"), ("transactions", "hanging"), ("retention", "backfill"), ("groups", "billing")]:
        assert word in get(server, view)
    assert json.loads(get(server, "api/v1/status"))["critical"] == 2
    for link in ('href="./metrics"', 'href="./cost"'):
        assert link not in get(server, ""), "it leads nowhere here"
    assert status_of(server, "cost")[0] == 503
    assert status_of(server, "api/v1/cost") == (503, "what a scrape costs is known of a running job alone\n")
    assert status_of(server, "metrics") == (404, "not found: log dirs that were read have a page, and no metrics\n")


def test_a_last_stable_offset_is_the_same_in_both_lists_whatever_the_policy_of_its_topic(server: StateServer) -> None:
    kept, every = (
        {
            (row["topic"], row["partition"]): row["last_stable_offset"]
            for row in json.loads(get(server, f"api/v1/{name}?limit=1000"))["rows"]
        }
        for name in ("retention", "partitions")
    )
    assert kept["payments", 0] is not None
    assert kept == every


def test_another_reading_takes_the_place_of_the_one_before(server: StateServer, dirs: list[Path]) -> None:
    before = json.loads(get(server, "api/v1/status"))["partitions"]
    server.show(state_of(dirs[:1]))
    assert json.loads(get(server, "api/v1/status"))["partitions"] < before


def test_it_serves_until_it_is_ended_and_reads_again(dirs: list[Path], tmp_path: Path) -> None:
    (port,) = free_ports(1)
    words = ("page", "--log-dirs", ",".join(map(str, dirs)), "--listen", f"127.0.0.1:{port}", "--every", "10ms")
    with segtail(*words, stated=tmp_path / "page.log") as page:
        first = until("the page answers", lambda: _asked(page, port))
        until("the log dirs are read again", lambda: (_asked(page, port) or first) > first)
        page.terminate()
        assert page.wait() == 0
        assert f"segtail: the page is at http://127.0.0.1:{port}/ until Ctrl-C" in page.stated


def _asked(page: Segtail, port: int) -> int | None:
    """As of when the page is, None while nobody answers."""
    assert page.running(), page.stated
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v1/status", timeout=SECONDS) as answer:
            at_ms: int = json.loads(answer.read())["at_ms"]
            return at_ms
    except OSError:
        return None


@pytest.mark.parametrize(
    ("more", "stated"),
    [
        ((), "give --log-dirs"),
        (("--log-dirs", "/nonexistent"), "/nonexistent does not exist"),
        (("--log-dirs", "/tmp", "--every", "0s"), "--every is not longer than nothing"),
        (("--log-dirs", "/tmp", "--every", "soon"), "--every"),
        (("--log-dirs", "/tmp", "--listen", "here"), "listen takes HOST:PORT"),
    ],
)
def test_what_cannot_be_served_is_named(more: tuple[str, ...], stated: str) -> None:
    done = run_command("page", *more)
    assert (done.returncode, stated in done.stderr) == (2, True), done.stderr


def test_an_address_that_is_taken_is_named(dirs: list[Path]) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{taken.getsockname()[1]}: Address already in use"),
    ):
        StateServer("127.0.0.1", taken.getsockname()[1], state_of(dirs))
