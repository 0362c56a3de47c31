"""Finds when the certificates end that the settings name."""

from collections.abc import Iterator
from pathlib import Path

from cryptography import x509

from streaming.common.certificates import read_ca, read_pair
from streaming.common.formatting import format_age, format_name, format_time
from streaming.errors import UsageError
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted

_CHECK = "certificates"
_SOON_SECONDS = 7 * 24 * 3600.0


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Read every file with certificates of the settings. Those of the web config file are checked with it."""
    chosen = setup.settings
    pairs = (
        (chosen.agent_cert, chosen.agent_key, "--agent-cert, --agent-key"),
        (chosen.tls_cert, chosen.tls_key, "--tls-cert, --tls-key"),
    )
    cas = ((chosen.agent_ca, "--agent-ca"), (chosen.tls_client_ca, "--tls-client-ca"))
    if not any(file for cert, key, _ in pairs for file in (cert, key)) and not any(ca for ca, _ in cas):
        yield Diagnosis(check=_CHECK, state=Outcome.NOT_APPLICABLE, what="the settings name no certificate")
    for cert, key, option in pairs:
        if cert is not None or key is not None:
            yield _of_pair(cert, key, option, setup.now)
    for ca, option in cas:
        if ca is not None:
            yield _of_ca(ca, option, setup.now)


def _of_pair(cert: Path | None, key: Path | None, option: str, now: float) -> Diagnosis:
    if cert is None or key is None:
        return Diagnosis(check=_CHECK, state=Outcome.FAULT, what=f"{option} belong together: name both")
    try:
        return of_end(str(cert), read_pair(cert, key, option).ends_at, now, _looks_at(cert))
    except UsageError as error:
        return Diagnosis(check=_CHECK, state=Outcome.FAULT, what=str(error), command=_looks_at(cert))


def _of_ca(ca: Path, option: str, now: float) -> Diagnosis:
    try:
        return of_end(str(ca), end_of(read_ca(ca, option)), now, _looks_at(ca))
    except UsageError as error:
        return Diagnosis(check=_CHECK, state=Outcome.FAULT, what=str(error), command=_looks_at(ca))


def end_of(pem: bytes) -> float:
    """When the first of these certificates ends, Unix seconds. Raises ValueError."""
    return min(each.not_valid_after_utc.timestamp() for each in x509.load_pem_x509_certificates(pem))


def names_of(pem: bytes) -> list[str]:
    """The hosts and addresses for which the first of these certificates is, none where it names none that can be read."""
    try:
        names = x509.load_pem_x509_certificates(pem)[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return []
    found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    return [format_name(name) for name in found]


def of_end(name: str, ends_at: float, now: float, command: str = "", check: str = _CHECK) -> Diagnosis:
    """The diagnosis of a certificate that ends at a time. ``command``: shows the certificate: who issues a new one is not known here."""
    left, when = ends_at - now, f"{format_time(ends_at * 1000)} ({format_age(now - ends_at)})"
    if left <= 0:
        what, state = f"{name} has ended at {when}: put a new one in its place, which is taken without a restart", Outcome.FAULT
    elif left < _SOON_SECONDS:
        what, state = f"{name} ends at {when}: put a new one in its place, which is taken without a restart", Outcome.WARNING
    else:
        what, state, command = f"{name} ends at {when}", Outcome.FINE, ""
    return Diagnosis(check=check, state=state, what=what, command=command)


def _looks_at(path: Path) -> str:
    return f"openssl x509 -noout -subject -enddate -in {quoted(path)}"
