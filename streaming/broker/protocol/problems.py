"""The problems between a job and an agent: one word for metrics, and a sentence that names what to check."""

from enum import StrEnum

import grpc

from streaming.broker.protocol.agent_calls import REASON


class Reason(StrEnum):
    """The reason why an agent does not take part."""

    REFUSED = "refused"  # nobody listens at the address
    SILENT = "silent"  # no answer in time
    UNRESOLVED = "unresolved"  # the name has no address
    UNTRUSTED = "untrusted"  # its certificate is not trusted
    UNAUTHORIZED = "unauthorized"  # it does not accept the job's token
    PROTOCOL = "protocol"  # the process there is no agent, only one side has TLS, or the two versions do not fit
    FAILED = "failed"  # it answered that it cannot
    OTHER_CLUSTER = "other_cluster"  # it watches another cluster than the job
    SAME_NAME = "same_name"  # two agents have one name
    SHARED_LOG_DIR = "shared_log_dir"  # two agents watch one log dir
    CLOCK = "clock"  # its clock differs from the job's
    BLOCKED = "blocked"  # a call into one of its log dirs does not come back; the other log dirs go on
    TWIN_CONSUMER = "twin_consumer"  # two jobs have one id, for example because a checkpoint was copied: one of them is refused
    STUCK = "stuck"  # its watcher gives no sign of life
    BUSY = "busy"  # it answers, and refuses what is more than one of its limits
    GONE = "gone"  # what it is asked for was deleted or replaced since it was listed
    AGENT_VERSION = "agent_version"  # it does not know the question: it is of an earlier version, and everything else of it can be used


TWIN = "another run of this job's query is served"
"""The beginning of the error that refuses a second job with the same id."""

UNKNOWN_CALL = "this agent knows no call"
"""The beginning of the error for a call that an agent does not know."""

_NO_AGENT = "what listens there is no agent: is it another port?"

_SIGNS = (
    # the text of gRPC and OpenSSL (nothing else distinguishes these cases), the reason, and the explanation
    ("certificate has expired", Reason.UNTRUSTED, "its certificate has expired"),
    ("CERTIFICATE_VERIFY_FAILED", Reason.UNTRUSTED, "its certificate is not signed by --agent-ca"),
    ("Hostname Verification Check failed", Reason.UNTRUSTED, "its certificate is for another name than {host}"),
    ("WRONG_VERSION_NUMBER", Reason.PROTOCOL, "what listens there speaks no TLS: is it an agent without --tls-cert, or another port?"),
    ("Failed parsing HTTP/2", Reason.PROTOCOL, _NO_AGENT),
    ("Connection refused", Reason.REFUSED, "nobody listens there: is it running?"),
    ("errors resolving", Reason.UNRESOLVED, "the name has no address"),
    (
        "Socket closed",
        Reason.PROTOCOL,
        "it closed the connection: it may ask for TLS (grpc+tls://) or for a certificate that it trusts (--agent-cert), or be no agent",
    ),
    # in TLS 1.3 a server says after the handshake that it asks for a certificate, or does not accept this one
    (
        "Unwrap failed",
        Reason.PROTOCOL,
        "it asks for a certificate, or for another one: name one that it trusts (--agent-cert)",
    ),
    ("Connection reset", Reason.PROTOCOL, "it closed the connection: it may ask for TLS (grpc+tls://), or be no agent"),
)


def explain(error: grpc.RpcError, host: str, *, sends_token: bool) -> tuple[Reason, str]:
    """The reason for which a call to the agent of this name failed, and its explanation."""
    code, text = error.code(), (error.details() or "").removeprefix("segtail: ")
    if code is grpc.StatusCode.UNAUTHENTICATED and not sends_token:
        return Reason.UNAUTHORIZED, "it asks for a token: name one with --agent-token-file"
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return Reason.UNAUTHORIZED, "it does not accept this job's token: compare --agent-token-file with the agent's --token-file"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Reason.SILENT, "it does not answer in time"
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return Reason.BUSY, f"it takes no more now ({text})"
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return (Reason.AGENT_VERSION, text) if UNKNOWN_CALL in text else (Reason.PROTOCOL, _NO_AGENT)
    if code is grpc.StatusCode.UNAVAILABLE:
        for sign, reason, meaning in _SIGNS:
            if sign in text:
                return reason, meaning.format(host=host)
    named = next((each.value for each in error.trailing_metadata() or () if each.key == REASON), "")
    return next((reason for reason in Reason if reason == named), Reason.FAILED), text
