"""Who may talk to an agent: over real TLS on loopback, with the certificates and tokens of files that change."""

import logging
import re
import threading
from pathlib import Path

import pytest

from streaming.broker.agent.call_server import AgentServer
from streaming.broker.agent.security import OPEN, ServerFiles, open_security
from streaming.broker.agent.service import Service
from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import Plan, PlanRequest, Range
from streaming.broker.protocol.excerpt_messages import Scan, ScanRequest
from streaming.common.units import Address
from streaming.errors import AgentError, UsageError
from streaming.spark.client.address_lookup import NO_FILES, ClientFiles
from streaming.spark.client.agent_client import AgentClient, credentials
from tests.agents import LOOPBACK, Agent, Reader
from tests.certificates import OTHER_TOKEN, TOKEN, Authority, token_file
from tests.limits import SECONDS


def asked(where: AgentServer, files: ClientFiles, *, scheme: str = "https", name: str = "") -> str:
    """The name of the agent that answers."""
    client = AgentClient(f"{scheme}://{where.address}{name and '/'}{name}", files)
    try:
        return client.status().agent
    finally:
        client.close()


def refused(where: AgentServer, files: ClientFiles, *, scheme: str = "https") -> tuple[str, str]:
    """Why it does not answer, in a word and in a sentence."""
    with pytest.raises(AgentError, match=re.escape(f"agent at {scheme}://{where.address}: ")) as error:
        asked(where, files, scheme=scheme)
    return error.value.reason, str(error.value)


# --- what may listen where


def test_loopback_needs_nothing() -> None:
    assert open_security(ServerFiles(), LOOPBACK) == OPEN
    for host in ("localhost", "::1", "127.8.9.10"):
        open_security(ServerFiles(), Address(host, 1))


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "broker-1", "127.0.0.1.example.com"])
def test_elsewhere_it_refuses_without_a_certificate_or_without_knowing_anybody(host: str, tmp_path: Path, authority: Authority) -> None:
    listen, tokens = Address(host, 8815), token_file(tmp_path / "token")
    with pytest.raises(UsageError, match=r"without a certificate serves loopback addresses only.*--tls-cert"):
        open_security(ServerFiles(token_file=tokens), listen)
    with pytest.raises(UsageError, match=r"authenticates no jobs serves loopback addresses only.*--token-file, --tls-client-ca"):
        open_security(authority.server(), listen)
    assert open_security(authority.server(token_file=tokens), listen).tokens is not None
    assert open_security(authority.server(client_ca=True), listen).certificates is not None


def test_what_belongs_together_is_asked_for(authority: Authority) -> None:
    cert = authority.issue("agent")
    with pytest.raises(UsageError, match="--tls-cert and --tls-key belong together"):
        open_security(ServerFiles(tls_cert=cert.cert), LOOPBACK)
    with pytest.raises(UsageError, match="--tls-client-ca needs a certificate"):
        open_security(ServerFiles(tls_client_ca=authority.ca), LOOPBACK)
    with pytest.raises(UsageError, match="--agent-cert and --agent-key belong together"):
        credentials(ClientFiles(ca=authority.ca, cert=cert.cert))


def test_files_that_will_not_do_are_named_without_what_stands_in_them(tmp_path: Path, authority: Authority) -> None:
    one, two, short = authority.issue("one"), authority.issue("two"), token_file(tmp_path / "token", "geheim")
    empty = token_file(tmp_path / "empty", "# none", "")
    for files, words in (
        (ServerFiles(tls_cert=one.cert, tls_key=two.key), "are not a certificate and its key"),
        (ServerFiles(tls_cert=one.key, tls_key=one.key), "are not a certificate and its key"),
        (ServerFiles(tls_cert=tmp_path / "gone", tls_key=one.key), "gone cannot be read: No such file"),
        (ServerFiles(tls_cert=one.cert, tls_key=one.key, tls_client_ca=one.key), "holds no certificate"),
        (ServerFiles(token_file=short), "the token in line 1 is too short"),
        (ServerFiles(token_file=empty), "holds no token"),
    ):
        with pytest.raises(UsageError, match=words) as error:
            open_security(files, LOOPBACK)
        assert "geheim" not in str(error.value)
        assert "BEGIN" not in str(error.value)


def test_a_secret_that_everybody_may_read_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = token_file(tmp_path / "token")
    open_security(ServerFiles(token_file=tokens), LOOPBACK)
    assert not caplog.records
    tokens.chmod(0o644)
    open_security(ServerFiles(token_file=tokens), LOOPBACK)
    assert "every user of this machine can read a secret" in caplog.text
    assert TOKEN not in caplog.text


# --- tokens


def test_a_job_needs_a_token_that_the_agent_knows(agent: Agent, tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "tokens", "# the job's", TOKEN, "another-token-of-somebody")
    with agent.listening(ServerFiles(token_file=tokens)) as where:
        assert asked(where, ClientFiles(token_file=token_file(tmp_path / "mine")), scheme="http") == "a1"
        for files in (NO_FILES, ClientFiles(token_file=token_file(tmp_path / "wrong", OTHER_TOKEN))):
            reason, stated = refused(where, files, scheme="http")
            assert reason == Reason.UNAUTHORIZED
            sent = "it asks for a token: name one with" if files is NO_FILES else "it does not accept this job's token: compare"
            assert f"{sent} --agent-token-file" in stated
            assert OTHER_TOKEN not in stated


def test_rows_need_the_token_too(agent: Agent, tmp_path: Path) -> None:
    with agent.listening(ServerFiles(token_file=token_file(tmp_path / "tokens"))) as where:
        client = AgentClient(f"http://{where.address}")
        for call in (
            lambda: client.read(Range("", "", agent.journal.id, 0, 1)),
            lambda: list(client.scan(ScanRequest(scan=Scan.BATCHES, excerpts=[]))),
            client.topics,
        ):
            with pytest.raises(AgentError) as error:
                call()
            assert error.value.reason == Reason.UNAUTHORIZED
        client.close()


def test_tokens_are_exchanged_without_a_restart(agent: Agent, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tokens, mine = token_file(tmp_path / "tokens"), token_file(tmp_path / "mine")
    files = ClientFiles(token_file=mine)
    with agent.listening(ServerFiles(token_file=tokens)) as where:
        client = AgentClient(f"http://{where.address}", files)
        assert client.status().agent == "a1"
        token_file(tokens, OTHER_TOKEN, TOKEN)  # first the agents learn the new one, then the jobs show it
        token_file(mine, OTHER_TOKEN)
        assert client.status().agent == "a1"
        token_file(tokens, OTHER_TOKEN)
        assert client.status().agent == "a1"
        token_file(mine, TOKEN)
        with pytest.raises(AgentError):
            client.status()
        tokens.write_text("short")  # cannot be used: what was there counts
        token_file(mine, OTHER_TOKEN)
        assert client.status().agent == "a1"
        client.close()
    assert "changed files cannot be used" in caplog.text
    assert TOKEN not in caplog.text
    assert OTHER_TOKEN not in caplog.text


def test_a_token_is_never_sent_in_the_clear_to_another_machine(tmp_path: Path) -> None:
    client = AgentClient("http://192.0.2.1:8815", ClientFiles(token_file=token_file(tmp_path / "mine")))
    with pytest.raises(AgentError, match="not sent there without TLS"):
        client.status()


# --- certificates


def test_both_sides_show_who_they_are(agent: Agent, authority: Authority, tmp_path: Path) -> None:
    with agent.listening(authority.server(client_ca=True)) as where:
        assert asked(where, authority.client(cert=True)) == "a1"
        assert refused(where, authority.client())[0] == Reason.PROTOCOL
        foreign = Authority(tmp_path / "foreign").issue("job", "job")
        reason, stated = refused(where, ClientFiles(ca=authority.ca, cert=foreign.cert, key=foreign.key))
        assert reason == Reason.PROTOCOL
        assert "--agent-cert" in stated
        expired = authority.issue("expired", "job", expired=True)
        assert refused(where, ClientFiles(ca=authority.ca, cert=expired.cert, key=expired.key))[0] == Reason.PROTOCOL


def test_an_agent_that_is_not_trusted_is_not_asked(agent: Agent, authority: Authority, tmp_path: Path) -> None:
    foreign = Authority(tmp_path / "foreign")
    with agent.listening(authority.server()) as where:
        reason, stated = refused(where, ClientFiles(ca=foreign.ca))
        assert reason == Reason.UNTRUSTED
        assert "not signed by --agent-ca" in stated
        assert refused(where, NO_FILES) == (
            Reason.UNTRUSTED,
            f"agent at https://{where.address}: TLS needs the certificates of its CA: name --agent-ca",
        )


def test_an_expired_certificate_is_named(agent: Agent, authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    expired = authority.issue("old", expired=True)
    with agent.listening(ServerFiles(tls_cert=expired.cert, tls_key=expired.key)) as where:
        assert "a certificate has ended or soon will" in caplog.text
        assert refused(where, authority.client()) == (Reason.UNTRUSTED, f"agent at https://{where.address}: its certificate has expired")


def test_a_certificate_is_for_a_name(agent: Agent, authority: Authority) -> None:
    pods = authority.issue("pods", "agents.kafka.svc")
    with agent.listening(ServerFiles(tls_cert=pods.cert, tls_key=pods.key)) as where:
        assert asked(where, authority.client(), name="agents.kafka.svc") == "a1"
        assert refused(where, authority.client())[1].endswith("its certificate is for another name than 127.0.0.1")


def test_tls_and_plain_do_not_meet(agent: Agent, authority: Authority) -> None:
    with agent.listening(ServerFiles()) as where:
        reason, stated = refused(where, authority.client())
        assert reason == Reason.PROTOCOL
        assert "speaks no TLS" in stated
    with agent.listening(authority.server()) as where:
        reason, stated = refused(where, NO_FILES, scheme="http")
        assert reason == Reason.PROTOCOL
        assert "https://" in stated


def test_certificates_are_exchanged_without_a_restart(
    agent: Agent, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after, has_come, plan = Authority(tmp_path / "after"), threading.Event(), Service.plan

    def noted_plan(service: Service, request: PlanRequest, principal: str = "") -> Plan:
        has_come.set()
        return plan(service, request, principal)

    monkeypatch.setattr(Service, "plan", noted_plan)
    served = authority.server()
    reader = Reader(agent).begin()
    reader.step()
    with agent.listening(served) as where:
        old = AgentClient(f"https://{where.address}", authority.client())
        long_poll = PlanRequest("job", "run 1", *reader.has, None, 2_000)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(old.plan(long_poll)))
        thread.start()
        assert has_come.wait(SECONDS)
        files = after.issue("agent")
        assert served.tls_cert is not None
        assert served.tls_key is not None
        files.cert.replace(served.tls_cert)  # the key comes later: until then the old pair stays
        assert asked(where, authority.client()) == "a1"
        files.key.replace(served.tls_key)
        assert asked(where, ClientFiles(ca=after.ca)) == "a1"
        assert refused(where, ClientFiles(ca=authority.ca))[0] == Reason.UNTRUSTED
        thread.join()
        assert answers[0].seq == reader.has[1]  # a call under way is not cut
        old.close()


def test_a_job_takes_up_another_certificate_of_its_own(agent: Agent, authority: Authority, tmp_path: Path) -> None:
    foreign = Authority(tmp_path / "foreign")
    mine = foreign.issue("job", "job")
    with agent.listening(authority.server(client_ca=True)) as where:
        client = AgentClient(f"https://{where.address}", ClientFiles(ca=authority.ca, cert=mine.cert, key=mine.key))
        with pytest.raises(AgentError):
            client.status()
        right = authority.issue("right", "job")
        right.cert.replace(mine.cert)
        right.key.replace(mine.key)
        assert client.status().agent == "a1"
        client.close()
