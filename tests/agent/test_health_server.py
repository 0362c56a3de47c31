"""When an agent is alive and when it serves, and who is told."""

import urllib.error
import urllib.request
from pathlib import Path

from streaming.broker.agent.call_server import AgentServer
from streaming.broker.agent.health_server import HEALTHY_SECONDS, AgentMetrics, HealthPages, Pulse
from streaming.broker.agent.security import OPEN, Security, ServerFiles, open_security
from tests.agents import LOOPBACK
from tests.certificates import TOKEN, token_file
from tests.limits import SECONDS


def test_is_ready_with_its_first_look_and_healthy_as_long_as_it_looks() -> None:
    now = [100.0]
    pulse = Pulse(lambda: now[0])
    assert (pulse.healthy, pulse.ready) == (True, False)
    now[0] += HEALTHY_SECONDS
    assert (pulse.healthy, pulse.ready) == (False, False)
    pulse.beat()
    assert (pulse.healthy, pulse.ready) == (True, True)
    now[0] += HEALTHY_SECONDS
    assert (pulse.healthy, pulse.ready) == (False, True)


def asked(server: AgentServer, path: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"http://{server.address}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def serving(security: Security, *, own_address: bool = False) -> AgentServer:
    """An agent whose watcher has looked once."""
    metrics, pulse = AgentMetrics(), Pulse()
    pulse.beat()
    return AgentServer({}, LOOPBACK, security, metrics, None if own_address else HealthPages(metrics, pulse))


def test_what_has_no_address_of_its_own_is_told_where_calls_are_answered() -> None:
    server = serving(OPEN)
    try:
        assert [asked(server, path) for path in ("/-/ready", "/-/healthy", "/none")] == [
            (200, "ready\n"),
            (200, "healthy\n"),
            (404, "not found\n"),
        ]
        assert "process_cpu_seconds_total" in asked(server, "/metrics")[1]
        assert asked(server, "/metrics", Host="elsewhere.example")[0] == 421, "a page in a browser has led there"
        assert asked(server, "/calls/status")[0] == 404
    finally:
        server.close()


def test_at_an_address_with_tokens_it_is_told_to_whoever_has_one(tmp_path: Path) -> None:
    server = serving(open_security(ServerFiles(token_file=token_file(tmp_path / "token")), LOOPBACK))
    try:
        assert asked(server, "/metrics")[0] == 401
        assert asked(server, "/-/ready", Authorization=f"Bearer {TOKEN}") == (200, "ready\n")
    finally:
        server.close()


def test_what_has_an_address_of_its_own_is_told_there_alone() -> None:
    server = serving(OPEN, own_address=True)
    try:
        assert asked(server, "/metrics") == (404, "its metrics have an address of their own (--metrics-listen)\n")
    finally:
        server.close()
