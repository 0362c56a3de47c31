"""Asks the agents whether they answer: address, TLS, token, version; and compares their clocks with the job's."""

import ssl
from collections.abc import Iterator

from streaming.broker.protocol.status_messages import StatusRequest
from streaming.common.formatting import format_duration, format_list
from streaming.common.targets import Scheme, Target
from streaming.errors import AgentError, SegtailError
from streaming.spark.client.address_lookup import ClientFiles, addresses, unresolved
from streaming.spark.client.agent_client import AgentClient
from streaming.terminal.doctor.certificates_check import end_of, names_of, of_end
from streaming.terminal.doctor.checkpoint_check import job_id_of
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_CHECK = "agents"
_CLOCK_SECONDS = 10.0
"""A larger difference of clocks is a problem of the job, too."""

_TLS_SECONDS = 3.0


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Ask every agent for its status, as a job does; it registers nothing."""
    chosen = setup.settings
    if not chosen.agents:
        yield Diagnosis(check=_CHECK, state=Outcome.NOT_APPLICABLE, what="no agents are given")
        return
    files = ClientFiles(ca=chosen.agent_ca, cert=chosen.agent_cert, key=chosen.agent_key, token_file=chosen.agent_token_file)
    found = addresses(chosen.agents, tls=chosen.agent_ca is not None)
    for name in unresolved(chosen.agents):
        host = Target.parse(name).address.host
        yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=f"{name} has no address", command=f"getent ahosts {host}")
    clusters: dict[str, str] = {}
    job_id = job_id_of(chosen.checkpoint.absolute())
    for address in found:
        yield from _of_agent(address, files, job_id, setup.now, clusters)
    if len(clusters) > 1:
        several = format_list([f"{agent} of {cluster}" for cluster, agent in clusters.items()], 3)
        yield Diagnosis(
            check=_CHECK, state=Outcome.FAULT, what=f"the agents are of different clusters: {several}; a job takes those of one"
        )


def _of_agent(address: str, files: ClientFiles, job_id: str, now: float, clusters: dict[str, str]) -> Iterator[Diagnosis]:
    target = Target.parse(address)
    pem = _certificate_of(target) if target.scheme is Scheme.TLS else b""
    if pem:
        yield of_end(f"the certificate of the agent at {target.address}", end_of(pem), now, check=_CHECK)
    client = AgentClient(address, files)
    try:
        status = client.status(StatusRequest(consumer=job_id))  # so that it says, too, whether the job belongs to another token
        client.check(status)
    except SegtailError as error:
        names = names_of(pem) if pem and isinstance(error, AgentError) and error.reason == "untrusted" else []
        is_for_another = names and (target.name or target.address.host) not in names
        what = f"{error}; it is for {format_list(names, 3)}" if is_for_another else str(error)
        yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=what, command=_looks(target, error))
        return
    finally:
        client.close()
    if status.cluster_id:
        clusters.setdefault(status.cluster_id, status.agent)
    yield Diagnosis(
        check=_CHECK,
        state=Outcome.FINE,
        what=f"{status.agent} at {address} answers: segtail {status.version}, brokers {', '.join(map(str, status.brokers))}",
    )
    if status.now_ms:
        yield _clock(status.agent, status.now_ms / 1000 - now)


def _looks(target: Target, error: SegtailError) -> str:
    """The command that shows why an agent cannot be reached."""
    reason = error.reason if isinstance(error, AgentError) else ""
    at = target.address
    if reason in ("refused", "silent"):
        return f"ssh {at.host} systemctl status segtail-agent"
    if reason == "untrusted":
        return f"openssl s_client -connect {at} </dev/null | openssl x509 -noout -subject -issuer -enddate -ext subjectAltName"
    return ""


def _certificate_of(target: Target) -> bytes:
    """The agent's own certificate, empty if it shows none. Whether it is trusted, the call shows."""
    at = target.address
    try:
        return ssl.get_server_certificate((at.host, at.port), timeout=_TLS_SECONDS).encode()
    except (OSError, ValueError):
        return b""  # the call says why


def _clock(agent: str, ahead: float) -> Diagnosis:
    if abs(ahead) <= _CLOCK_SECONDS:
        return Diagnosis(check="clocks", state=Outcome.FINE, what=f"the clock of {agent} agrees with this one")
    word = "ahead of" if ahead > 0 else "behind"
    return Diagnosis(
        check="clocks",
        state=Outcome.WARNING,
        what=f"the clock of {agent} is {format_duration(abs(ahead))} {word} this one: ages and times of transactions are wrong by that",
        command="timedatectl status",
    )
