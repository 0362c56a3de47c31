"""Finds whether a job can serve its metrics: the address is free, and the web config file in order."""

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from streaming.common.units import Address
from streaming.common.web.web_config import read_web_config
from streaming.errors import UsageError
from streaming.terminal.doctor.certificates_check import end_of, of_end
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted
from streaming.terminal.doctor.locks import holder_of


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Bind the address for a moment, without listening."""
    chosen = setup.settings
    addresses = [chosen.listen, *([chosen.metrics_listen] if chosen.metrics_listen is not None else [])]
    holder = holder_of(chosen.checkpoint.absolute() / "job.lock") or 0
    for address in addresses:
        yield _of_address(address, holder, _port_of(setup.job))
    if chosen.web_config is not None:
        yield from _of_web_config(chosen.web_config, setup.now)


def _port_of(job: str) -> int:
    """The port of an address http://HOST:PORT, 0 if it has none."""
    try:
        return urlsplit(job).port or 0
    except ValueError:
        return 0


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
        yield of_end(str(file), ends_at, now, f"openssl x509 -noout -subject -enddate -in {quoted(file)}", check="web config")
