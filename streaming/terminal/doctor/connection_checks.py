"""Checks of connections: agents, certificates and when they end, addresses to listen on, and what a running job says of itself."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from streaming.broker.protocol.status_json import AgentState, Status
from streaming.common.certificates import read_ca, read_pair
from streaming.common.targets import Scheme, Target
from streaming.common.units import Address, format_age, format_count, format_duration, format_list, format_name, format_time
from streaming.common.web.gate import read_web_config
from streaming.errors import AgentError, SegtailError, UsageError
from streaming.spark.client.address_lookup import ClientFiles, addresses, unresolved
from streaming.spark.client.agent_client import AgentClient
from streaming.terminal.doctor.checkpoint_checks import holder_of
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted

_CERTIFICATES = "certificates"
_SOON_SECONDS = 7 * 24 * 3600.0

_AGENTS = "agents"

_CLOCK_SECONDS = 10.0
"""A larger difference of clocks is a problem of the job, too."""

_TLS_SECONDS = 3.0

_LAGGING_MS = 120_000
"""With more the job lags, as in its alert."""


def check_agents(setup: Setup) -> Iterator[Diagnosis]:
    """Ask every agent for its status, as a job does; it registers nothing."""
    chosen = setup.settings
    if not chosen.agents:
        yield Diagnosis(check=_AGENTS, state=Outcome.NOT_APPLICABLE, what="no agents are given")
        return
    files = ClientFiles(ca=chosen.agent_ca, cert=chosen.agent_cert, key=chosen.agent_key, token_file=chosen.agent_token_file)
    found = addresses(chosen.agents, tls=chosen.agent_ca is not None)
    for name in unresolved(chosen.agents):
        host = Target.parse(name).address.host
        yield Diagnosis(check=_AGENTS, state=Outcome.FAULT, what=f"{name} has no address", command=f"getent ahosts {host}")
    clusters: dict[str, str] = {}
    for address in found:
        yield from _of_agent(address, files, setup.now, clusters)
    if len(clusters) > 1:
        several = format_list([f"{agent} of {cluster}" for cluster, agent in clusters.items()], 3)
        yield Diagnosis(
            check=_AGENTS, state=Outcome.FAULT, what=f"the agents are of different clusters: {several}; a job takes those of one"
        )


def _of_agent(address: str, files: ClientFiles, now: float, clusters: dict[str, str]) -> Iterator[Diagnosis]:
    target = Target.parse(address)
    pem = _certificate_of(target) if target.scheme is Scheme.TLS else b""
    if pem:
        yield of_end(f"the certificate of the agent at {target.address}", end_of(pem), now, check=_AGENTS)
    client = AgentClient(address, files)
    try:
        status = client.status()
        client.check(status)
    except SegtailError as error:
        names = names_of(pem) if pem and isinstance(error, AgentError) and error.reason == "untrusted" else []
        is_for_another = names and (target.name or target.address.host) not in names
        what = f"{error}; it is for {format_list(names, 3)}" if is_for_another else str(error)
        yield Diagnosis(check=_AGENTS, state=Outcome.FAULT, what=what, command=_looks(target, error))
        return
    finally:
        client.close()
    if status.cluster_id:
        clusters.setdefault(status.cluster_id, status.agent)
    yield Diagnosis(
        check=_AGENTS,
        state=Outcome.FINE,
        what=f"{status.agent} at {address} answers: segtail {status.version}, brokers {', '.join(map(str, status.brokers))}",
    )
    if status.now_ms:
        yield _clock(status.agent, status.now_ms / 1000 - now)


def _certificate_of(target: Target) -> bytes:
    """The agent's own certificate, empty if it shows none. Whether it is trusted, the call shows."""
    at = target.address
    try:
        return ssl.get_server_certificate((at.host, at.port), timeout=_TLS_SECONDS).encode()
    except (OSError, ValueError):
        return b""  # the call says why


def of_end(name: str, ends_at: float, now: float, command: str = "", check: str = _CERTIFICATES) -> Diagnosis:
    """The diagnosis of a certificate that ends at a time. ``command``: shows the certificate: who issues a new one is not known here."""
    left, when = ends_at - now, f"{format_time(ends_at * 1000)} ({format_age(now - ends_at)})"
    if left <= 0:
        what, state = f"{name} has ended at {when}: put a new one in its place, which is taken without a restart", Outcome.FAULT
    elif left < _SOON_SECONDS:
        what, state = f"{name} ends at {when}: put a new one in its place, which is taken without a restart", Outcome.WARNING
    else:
        what, state, command = f"{name} ends at {when}", Outcome.FINE, ""
    return Diagnosis(check=check, state=state, what=what, command=command)


def end_of(pem: bytes) -> float:
    """When the first of these certificates ends, Unix seconds. Raises ValueError."""
    from cryptography import x509

    return min(each.not_valid_after_utc.timestamp() for each in x509.load_pem_x509_certificates(pem))


def names_of(pem: bytes) -> list[str]:
    """The hosts and addresses for which the first of these certificates is, none where it names none that can be read."""
    from cryptography import x509

    try:
        names = x509.load_pem_x509_certificates(pem)[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return []
    found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    return [format_name(name) for name in found]


def _looks(target: Target, error: SegtailError) -> str:
    """The command that shows why an agent cannot be reached."""
    reason = error.reason if isinstance(error, AgentError) else ""
    at = target.address
    if reason in ("refused", "silent"):
        return f"ssh {at.host} systemctl status segtail-agent"
    if reason == "untrusted":
        return f"openssl s_client -connect {at} </dev/null | openssl x509 -noout -subject -issuer -enddate -ext subjectAltName"
    return ""


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


def check_certificates(setup: Setup) -> Iterator[Diagnosis]:
    """Read every file with certificates of the settings. Those of the web config file are checked with it.

    Finds when the certificates end that the settings name.
    """
    chosen = setup.settings
    pairs = (
        (chosen.agent_cert, chosen.agent_key, "--agent-cert, --agent-key"),
        (chosen.tls_cert, chosen.tls_key, "--tls-cert, --tls-key"),
    )
    cas = ((chosen.agent_ca, "--agent-ca"), (chosen.tls_client_ca, "--tls-client-ca"))
    if not any(file for cert, key, _ in pairs for file in (cert, key)) and not any(ca for ca, _ in cas):
        yield Diagnosis(check=_CERTIFICATES, state=Outcome.NOT_APPLICABLE, what="the settings name no certificate")
    for cert, key, option in pairs:
        if cert is not None or key is not None:
            yield _of_pair(cert, key, option, setup.now)
    for ca, option in cas:
        if ca is not None:
            yield _of_ca(ca, option, setup.now)


def _of_pair(cert: Path | None, key: Path | None, option: str, now: float) -> Diagnosis:
    if cert is None or key is None:
        return Diagnosis(check=_CERTIFICATES, state=Outcome.FAULT, what=f"{option} belong together: name both")
    try:
        return of_end(str(cert), read_pair(cert, key, option).ends_at, now, _looks_at(cert))
    except UsageError as error:
        return Diagnosis(check=_CERTIFICATES, state=Outcome.FAULT, what=str(error), command=_looks_at(cert))


def _looks_at(path: Path) -> str:
    return f"openssl x509 -noout -subject -enddate -in {quoted(path)}"


def _of_ca(ca: Path, option: str, now: float) -> Diagnosis:
    try:
        return of_end(str(ca), end_of(read_ca(ca, option)), now, _looks_at(ca))
    except UsageError as error:
        return Diagnosis(check=_CERTIFICATES, state=Outcome.FAULT, what=str(error), command=_looks_at(ca))


def check_listening(setup: Setup) -> Iterator[Diagnosis]:
    """Bind the address for a moment, without listening.

    Asks the agents whether they answer: address, TLS, token, version; and compares their clocks with the job's.
    """
    chosen = setup.settings
    listens = [chosen.listen, *([chosen.metrics_listen] if chosen.metrics_listen is not None else [])]
    holder = holder_of(chosen.checkpoint.absolute() / "job.lock") or 0
    for address in listens:
        yield _of_address(address, holder, _port_of(setup.job))
    if chosen.web_config is not None:
        yield from _of_web_config(chosen.web_config, setup.now)


def _of_address(address: Address, holder: int, asked_port: int) -> Diagnosis:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the exporter does
            probe.bind(place)
    except OSError as error:
        if holder:
            what = f"{address} is in use, as it should be: a job runs with this checkpoint"
            return Diagnosis(check="address", state=Outcome.FINE, what=what)
        if asked_port == address.port:
            return Diagnosis(
                check="address", state=Outcome.FINE, what=f"{address} is in use, as it should be: the job that is asked listens there"
            )
        return Diagnosis(
            check="address",
            state=Outcome.FAULT,
            what=f"{address} cannot be listened on ({error.strerror or error}): see who does, or choose another by --listen",
            command=f"ss -ltnp 'sport = :{address.port}'",
        )
    return Diagnosis(check="address", state=Outcome.FINE, what=f"{address} is free")


def _port_of(job: str) -> int:
    """The port of an address http://HOST:PORT, 0 if it has none."""
    try:
        return urlsplit(job).port or 0
    except ValueError:
        return 0


def _of_web_config(path: Path, now: float) -> Iterator[Diagnosis]:
    try:
        _, files = read_web_config(path)
    except UsageError as error:
        yield Diagnosis(check="web config", state=Outcome.FAULT, what=str(error), command=f"ls -l {quoted(path)}")
        return
    yield Diagnosis(check="web config", state=Outcome.FINE, what=f"{path} is understood")
    for file in files[1:]:
        try:
            ends_at = end_of(file.read_bytes())
        except (OSError, ValueError):
            continue  # a key, or gone by now
        yield of_end(str(file), ends_at, now, _looks_at(file), check="web config")


def of_job(url: str, status: Status) -> Iterator[Diagnosis]:
    """Findings from the answer of a job. ``url``: its address, without a password."""
    what = f"the job at {url} is segtail {status.version} and watches {format_count(status.logs, 'log')}"
    if status.ready:
        yield Diagnosis(check="job", state=Outcome.FINE, what=f"{what}; {status.freshness}")
    else:
        yield Diagnosis(
            check="job", state=Outcome.WARNING, what=f"{what}, and is not ready: it has not read all that was there at its start"
        )
    of_agents = [agent.explanation for agent in status.agents if agent.explanation]  # each of these has a line of its own
    for sentence in status.doubts:
        if not sentence.endswith(tuple(of_agents)):
            yield Diagnosis(check="job", state=Outcome.UNKNOWN, what=sentence)
    for agent in status.agents:
        yield _state_of(agent)
    if status.omitted_agents:
        yield Diagnosis(check="agents", state=Outcome.UNKNOWN, what=f"{format_count(status.omitted_agents, 'more agent')} are not listed")


def _state_of(agent: AgentState) -> Diagnosis:
    explanation = f": {agent.explanation}" if agent.explanation else ""
    if not agent.up:
        return Diagnosis(check="agents", state=Outcome.FAULT, what=f"{agent.name} is down{explanation}")
    if agent.problems:
        return Diagnosis(check="agents", state=Outcome.WARNING, what=f"{agent.name} has {format_list(agent.problems, 5)}{explanation}")
    if agent.behind_ms > _LAGGING_MS:
        what = f"{agent.name} is up, and its oldest event has waited for {format_duration(agent.behind_ms / 1000)}"
        return Diagnosis(check="agents", state=Outcome.WARNING, what=what)
    return Diagnosis(check="agents", state=Outcome.FINE, what=f"{agent.name} is up")
