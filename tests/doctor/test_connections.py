"""Certificates, agents, clocks and addresses, over real TLS on loopback."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streaming.broker.agent.security import ServerFiles
from streaming.broker.agent.service import Service
from streaming.broker.protocol.status_json import AgentState, Status
from streaming.common.settings import Settings
from streaming.common.targets import Target
from streaming.common.units import Address
from streaming.terminal.doctor import connection_checks, log_dir_checks
from streaming.terminal.doctor.connection_checks import of_job
from streaming.terminal.doctor.diagnosis import Diagnosis, Setup
from tests.agents import LOOPBACK, Agent
from tests.builders import log_dir
from tests.certificates import OTHER_TOKEN, TOKEN, Authority, token_file
from tests.doctor.examined import FAULT, FINE, NOW, UNKNOWN, WARNING, examined, only

DAY = 86_400.0


def asked(address: str, now: float = NOW, **files: Path | None) -> list[Diagnosis]:
    return examined(connection_checks.check_agents, now=now, agents=(Target.parse(address),), **files)


def test_certificates_that_have_ended_or_soon_will(authority: Authority) -> None:
    old, good = authority.issue("old", expired=True), authority.issue("good")
    found = only(connection_checks.check_certificates, agent_cert=old.cert, agent_key=old.key)
    assert (found.state, found.command) == (FAULT, f"openssl x509 -noout -subject -enddate -in {old.cert}")
    assert f"{old.cert} has ended at 2021-01-01T00:00:00Z" in found.what
    ends_at = connection_checks.end_of(good.cert.read_bytes())
    states = [
        only(connection_checks.check_certificates, now=ends_at - left, tls_cert=good.cert, tls_key=good.key).state
        for left in (8 * DAY, 6 * DAY, 0)
    ]
    assert states == [FINE, WARNING, FAULT]


def test_a_certificate_and_the_key_of_another(authority: Authority) -> None:
    one, other = authority.issue("one"), authority.issue("other")
    assert "are not a certificate and its key" in only(connection_checks.check_certificates, tls_cert=one.cert, tls_key=other.key).what
    assert only(connection_checks.check_certificates, tls_cert=one.cert).what == "--tls-cert, --tls-key belong together: name both"
    assert only(connection_checks.check_certificates, agent_ca=one.key).state is FAULT
    assert only(connection_checks.check_certificates).state == "not applicable"


def test_an_agent_that_answers(agent: Agent, authority: Authority, tmp_path: Path) -> None:
    token = token_file(tmp_path / "token")
    with agent.listening(authority.server(token_file=token)) as where:
        address = f"https://{where.address}"
        clock = agent.service.status().now_ms / 1000
        found = asked(address, now=clock, agent_ca=authority.ca, agent_token_file=token)
        late = asked(address, now=clock - 60, agent_ca=authority.ca, agent_token_file=token)[-1]
    assert [each.state for each in found] == [FINE, FINE, FINE]
    assert found[1].what.startswith(f"a1 at {address} answers: segtail ")
    assert late.state is WARNING
    assert late.what.startswith("the clock of a1 is 1m ahead of this one")


def test_an_agent_of_another_version(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    status = Service.status
    monkeypatch.setattr(Service, "status", lambda *asked: replace(status(*asked), protocol=10_000))
    with agent.served() as address:
        (found,) = asked(f"http://{address}")
    assert found.state is FAULT
    assert "speaks protocol 10000" in found.what


def test_a_token_that_an_agent_does_not_accept(agent: Agent, authority: Authority, tmp_path: Path) -> None:
    right, wrong = token_file(tmp_path / "right", TOKEN), token_file(tmp_path / "wrong", OTHER_TOKEN)
    with agent.listening(authority.server(token_file=right)) as where:
        address = f"https://{where.address}"
        _, found = asked(address, agent_ca=authority.ca, agent_token_file=wrong)
    assert found.state is FAULT
    assert "it does not accept this job's token" in found.what


def test_an_agent_whose_certificate_has_ended(agent: Agent, authority: Authority) -> None:
    old = authority.issue("agent", expired=True)
    with agent.listening(ServerFiles(tls_cert=old.cert, tls_key=old.key)) as where:
        address = f"https://{where.address}"
        certificate, call = asked(address, agent_ca=authority.ca)
    assert (certificate.state, call.state) == (FAULT, FAULT)
    assert "has ended at 2021-01-01T00:00:00Z" in certificate.what
    assert call.command.startswith("openssl s_client -connect 127.0.0.1:")


def test_the_names_of_a_certificate_that_is_for_another(agent: Agent, authority: Authority) -> None:
    pods = authority.issue("pods", "agents.kafka.svc", "10.0.0.1")
    with agent.listening(ServerFiles(tls_cert=pods.cert, tls_key=pods.key)) as where:
        _, found = asked(f"https://{where.address}", agent_ca=authority.ca)
    assert found.what.endswith("its certificate is for another name than 127.0.0.1; it is for agents.kafka.svc, 10.0.0.1")


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (found,) = asked(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert (found.state, found.command) == (FAULT, "ssh 127.0.0.1 systemctl status segtail-agent")
    assert "nobody listens there" in found.what


def test_a_clock_that_was_set_back_behind_the_broker_s_files(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    written = disk.path / "recovery-point-offset-checkpoint"
    for seconds, state in ((60, FINE), (61, WARNING)):
        for path in disk.path.iterdir():
            os.utime(path, (NOW, NOW))
        os.utime(written, (NOW, NOW + seconds))
        assert only(log_dir_checks.check_clocks, disk.path).state is state


def test_an_address_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = Address("127.0.0.1", other.getsockname()[1])
        found = only(connection_checks.check_listening, listen=address, checkpoint=tmp_path)
        assert (found.state, found.command) == (FAULT, f"ss -ltnp 'sport = :{address.port}'")
        for job, state in ((f"http://localhost:{address.port}", FINE), ("http://localhost:1", FAULT), ("http://localhost:x", FAULT)):
            asked = Setup(settings=Settings(listen=address, checkpoint=tmp_path), environ={}, now=NOW, log_dirs=None, job=job)
            assert [each.state for each in connection_checks.check_listening(asked)] == [state]
        monkeypatch.setattr(connection_checks, "holder_of", lambda _: 1234)
        assert only(connection_checks.check_listening, listen=address, checkpoint=tmp_path).state is FINE
    monkeypatch.undo()
    assert only(connection_checks.check_listening, listen=address, checkpoint=tmp_path).state is FINE


def test_a_web_config_file_and_its_certificate(authority: Authority, tmp_path: Path) -> None:
    old, path = authority.issue("old", expired=True), tmp_path / "web.yaml"
    path.write_text(f"tls_server_config:\n  cert_file: {old.cert}\n  key_file: {old.key}\n")
    _, understood, ended = examined(connection_checks.check_listening, listen=LOOPBACK, web_config=path)
    assert (understood.state, ended.state) == (FINE, FAULT)
    path.write_text("tls_server_confg: {}\n")
    found = examined(connection_checks.check_listening, listen=LOOPBACK, web_config=path)[1]
    assert found.state is FAULT
    assert "tls_server_confg is not known" in found.what


def test_what_a_job_says() -> None:
    agents = [
        AgentState(name="a1", up=True, behind_ms=1_000),
        AgentState(name="a2", up=True, behind_ms=121_000),
        AgentState(name="a3", up=True, problems=["clock"], explanation="its clock is ahead"),
        AgentState(name="a4", up=False),
    ]
    status = Status(at_ms=0, version="9", ready=True, verdict="", freshness="newest 1s ago", logs=3, agents=agents, doubts=["who leads"])
    found = list(of_job("http://job", status))
    assert [each.state for each in found] == [FINE, UNKNOWN, FINE, WARNING, WARNING, FAULT]
    assert found[0].what == "the job at http://job is segtail 9 and watches 3 logs; newest 1s ago"
    assert found[4].what == "a3 has clock: its clock is ahead"


def test_clocks_agree_within_ten_seconds_either_way() -> None:
    found = {ahead: connection_checks._clock("a1", ahead) for ahead in (-10.5, -10.0, 10.0, 10.5)}
    assert [each.state for each in found.values()] == [WARNING, FINE, FINE, WARNING]
    assert "the clock of a1 is 10s behind this one" in found[-10.5].what
    assert "the clock of a1 is 10s ahead of this one" in found[10.5].what


def test_of_several_certificates_the_first_end_counts(authority: Authority) -> None:
    old, good = (authority.issue(name, expired=name == "old").cert.read_bytes() for name in ("old", "good"))
    assert connection_checks.end_of(good + old) == connection_checks.end_of(old) < connection_checks.end_of(good)


def test_agents_of_two_clusters_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_of(address: str, _files: object, _now: float, clusters: dict[str, str]) -> Iterator[Diagnosis]:
        clusters.setdefault(ids[address], address)
        return iter(())

    monkeypatch.setattr(connection_checks, "_of_agent", one_of)
    for ids, states in (({"h:1": "c1", "h:2": "c1"}, []), ({"h:1": "c1", "h:2": "c2"}, [FAULT])):
        monkeypatch.setattr(connection_checks, "addresses", lambda *_, found=ids, **__: list(found))
        targets = tuple(Target.parse(f"http://127.0.0.1:{number}") for number in (1, 2))
        assert [each.state for each in examined(connection_checks.check_agents, agents=targets)] == states


def test_an_agent_lags_that_is_more_than_two_minutes_behind() -> None:
    agents = [AgentState(name="a1", up=True, behind_ms=waited) for waited in (120_000, 120_500)]
    status = Status(at_ms=0, version="9", ready=True, verdict="", freshness="", logs=3, agents=agents, omitted_agents=2)
    found = list(of_job("http://job", status))
    assert [each.state for each in found] == [FINE, FINE, WARNING, UNKNOWN]
    assert found[-1].what == "2 more agents are not listed"
    assert list(of_job("http://job", replace(status, omitted_agents=0)))[-1].state is WARNING
