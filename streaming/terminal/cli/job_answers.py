"""Asks a running job over HTTP for a message."""

import http.client
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from typing import TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from streaming.broker.protocol.json_message import Message
from streaming.common.targets import is_loopback
from streaming.common.units import format_name
from streaming.errors import AgentError, NotYetError, UsageError

M = TypeVar("M", bound=Message)

_SECONDS = 30.0
_MOST_BYTES = 256 << 20


def ask(job: str, path: str, kind: type[M], *, seconds: float = _SECONDS) -> M | None:
    """What a job answers to a path with its query; None if it has no such thing.

    Args:
        job: ``http://[USER:PASSWORD@]HOST:PORT``, or with https.
        seconds: it waits so long for each piece of the answer.

    Raises:
        UsageError: the job cannot be reached, refuses to answer, or answers something else.
        NotYetError: it is starting, or does not know this yet.
    """
    data = fetch(job, path, seconds)
    if data is None:
        return None
    try:
        return kind.decode(data)
    except AgentError as error:
        raise UsageError(f"the job's answer is not understood: {error}") from error


def fetch(job: str, path: str, seconds: float) -> bytes | None:
    """The answer as it comes, None if there is no such thing. Raises as `ask` does."""
    parts = urlsplit(job)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{shown(job)} is not http://HOST:PORT")
    request = urllib.request.Request(
        urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path.partition("?")[0], path.partition("?")[2], ""))
    )
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    try:
        with _opener(parts.hostname).open(request, timeout=seconds) as response:
            data: bytes = response.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            if error.code == 404:
                return None
            kind_of_error = NotYetError if error.code == 503 else UsageError
            if error.code == 405:  # an agent answers calls alone
                raise UsageError(
                    f"{shown(job)} is no job: an agent answers there. Name the job's address, which is its --listen"
                ) from error
            raise kind_of_error(f"{shown(job)}: {error.code} {error.reason}{_why(error)}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise UsageError(f"{shown(job)} cannot be asked: {_explained(reason)}") from error
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{shown(job)}: its answer is too large")
    return data


def shown(job: str) -> str:
    """The address without a password."""
    return format_name(job.rpartition("@")[2])


def _opener(host: str) -> urllib.request.OpenerDirector:
    """What opens a URL: a job of this host without the proxy of ``http_proxy``, which could not reach it, and would read the password."""
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if is_loopback(host) else []))


def _why(error: urllib.error.HTTPError) -> str:
    """What the job says of its refusal, "" if that cannot be read."""
    try:
        text = error.read(200).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException):
        return ""
    return f": {text if text.isprintable() else format_name(text)}" if text else ""


def _explained(reason: object) -> str:
    """Why there is no answer, and what to write instead where that is plain."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted here ({reason.verify_message}): the variable SSL_CERT_FILE names the file of its CA"
    if isinstance(reason, ssl.SSLError):
        return "it speaks no TLS: write http://"
    if isinstance(reason, http.client.RemoteDisconnected):
        return "it closes the connection: if it speaks TLS, write https://"
    return str(getattr(reason, "strerror", None) or reason)
