"""The client of an agent. Every call has a deadline, and every failure is an AgentError that names the address."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from http import HTTPStatus
from http.client import BadStatusLine, HTTPException
from typing import TypeVar, cast

import pyarrow as pa

import streaming
from streaming.broker.protocol.agent_calls import MOST_REFUSAL, PATH, POSITIONS_BYTES, Call, Reason, Refusal, messages_of, refusal_of
from streaming.broker.protocol.consumer_messages import (
    NOT_BEGUN,
    Plan,
    PlanRequest,
    Range,
    Register,
)
from streaming.broker.protocol.excerpt_messages import (
    Excerpt,
    Excerpts,
    ExcerptsRequest,
    OwnersRequest,
    Scan,
    ScanEnd,
    ScanRequest,
    UnreadPart,
)
from streaming.broker.protocol.group_json import BatchCheck
from streaming.broker.protocol.group_messages import (
    MOST_POSITIONS,
    POSITIONS,
    POSITIONS_ASKED,
    BatchRequest,
    GroupsRequest,
    PositionsRequest,
    RecordsRequest,
)
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer, read_groups, read_records, read_table
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.position_messages import Between, BetweenRequest, Missing, Reached, ReachRequest
from streaming.broker.protocol.status_messages import Status, StatusRequest
from streaming.broker.protocol.tokens import Token, header_of, read_tokens
from streaming.broker.protocol.versions import agent_problem
from streaming.common.arrow_streams import cast_columns, read_stream
from streaming.common.certificates import Pair, read_ca, read_pair
from streaming.common.event_row import EVENTS
from streaming.common.reloading import Reloading
from streaming.common.rows import BATCHES, PRODUCER_OWNERS, TRANSACTION_ROWS
from streaming.common.targets import Scheme, Target, is_loopback
from streaming.errors import AgentError, GoneError, UsageError, VersionError
from streaming.spark.client.address_lookup import NO_FILES, ClientFiles
from streaming.spark.client.bounded_socket import BoundedSocket, Bounds, connect, with_tls
from streaming.spark.client.column_versions import as_events, check_origin

log = logging.getLogger(__name__)

_KEPT = 8

Headers = tuple[tuple[str, str], ...]

_OBJECT_BYTES = 64
"""What a message takes besides its bytes: an answer of a billion messages of one byte each is a large one."""

ANSWER_SECONDS = 3.0
"""How long an agent may take to answer a message."""

REGISTER_SECONDS = 10.0
"""How long an agent may take to learn where a run begins: the positions of 200,000 logs are sent, and read."""

CHECK_SECONDS = 10.0
"""How long an agent may take to show that its rows can be read: there may be jobs whose rows come first."""

STREAM_SECONDS = 30.0
"""How long an agent may take to stream a range."""

GROUPS_SECONDS = 60.0
"""How long an agent may take to send what changed of groups, or records: a million commits, the first time."""

POSITIONS_SECONDS = 30.0
"""How long an agent may take to find the positions of `MOST_POSITIONS` offsets, or to check a batch."""

LISTING_SECONDS = 120.0
"""How long an agent may take to list excerpts: where a time begins in a log, indexes may not say."""

REACH_SECONDS = 30.0
"""How long an agent may take to plan by positions. At first, when it opens all logs, it has as long as for a listing."""

SCAN_SECONDS = 3600.0
"""How long an agent may take to stream the rows of excerpts, at the speed at which the client reads them."""

ANSWER_BYTES = 1 << 30
"""The most bytes of an answer that is kept whole: ten million events."""

MESSAGE_BYTES = 4 << 20
"""The most bytes of an answer of one message."""

POSITIONS_MESSAGE_BYTES = 3 * POSITIONS_BYTES
"""The most bytes of an answer with positions: it has them up to three times."""

STATUS_BYTES = 32 << 20
"""The most bytes of a status with a catalog: that of 10,000 logs has 3 MiB at most, of 100,000 logs 28."""

SCAN_BYTES = 1 << 40
"""The most bytes of an answer that is passed on message by message."""

_SCANNED = {Scan.BATCHES: BATCHES, Scan.RANGES: EVENTS, Scan.TRANSACTIONS: TRANSACTION_ROWS}

_Answer = TypeVar("_Answer", bound=Message)

_NO_ROWS = Range(consumer="", run="", journal="", after=-1, upto=-1)

_CLOSED = "it closed the connection: it may ask for TLS (https://) or for a certificate that it trusts (--agent-cert), or be no agent"
_EXPIRED, _OTHER_NAME = 10, (62, 64)  # X509_V_ERR_CERT_HAS_EXPIRED, ..._HOSTNAME_MISMATCH, ..._IP_ADDRESS_MISMATCH


class AgentClient:
    """A connection to the agent at ``address`` (host:port, or in the form of `targets`). Safe to use from several threads."""

    def __init__(self, address: str, files: ClientFiles = NO_FILES, clock: Callable[[], float] = time.monotonic) -> None:
        """Store the address. The first call opens the connection."""
        self.address = address
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: Connections | None = None
        self._connected_with: Credentials | None = None  # the credentials of the connection
        self._version = "of unknown version"

    def status(self, request: StatusRequest | None = None) -> Status:
        """The agent's status. Without a request, it is complete except for the pending groups and the catalog."""
        request = request or StatusRequest()
        most = STATUS_BYTES if request.catalog else MESSAGE_BYTES
        status = self._ask(Call.STATUS, request.encode(), Status, ANSWER_SECONDS, most)
        self._version = status.version
        return status

    def register(self, request: Register) -> Status:
        """Register a run that begins."""
        return self._ask(Call.REGISTER, request.encode(), Status, REGISTER_SECONDS)

    def plan(self, request: PlanRequest) -> Plan:
        """Ask how far a budget reaches."""
        plan = self._ask(Call.PLAN, request.encode(), Plan, ANSWER_SECONDS + request.wait_ms / 1000)
        if plan.seq != NOT_BEGUN and plan.seq < plan.after:
            raise self._error(f"it plans back from {plan.after} to {plan.seq} of its journal", Reason.PROTOCOL)
        if plan.seq != NOT_BEGUN and plan.journal == request.journal and plan.after > request.after:
            raise self._error(f"it leaves out what is between {request.after} and {plan.after} of its journal", Reason.PROTOCOL)
        return plan

    def check(self, status: Status) -> None:
        """Check whether this version of segtail can read the rows that the agent sends.

        Raises:
            VersionError: it cannot; the message says what to upgrade.
            AgentError: it does not answer.
        """
        problem = agent_problem(status.protocol, status.version, streaming.__version__)
        if problem:
            raise VersionError(f"agent at {self.address}: {problem}")
        self._rows(_NO_ROWS, CHECK_SECONDS, MESSAGE_BYTES)

    def read(self, request: Range, agent: str = "", seconds: float = STREAM_SECONDS) -> pa.Table:
        """Read all rows of a range (`streaming.common.event_row.EVENTS`).

        Args:
            agent: the name of the agent, "" for any.
            seconds: how long the rows may take.

        Raises:
            VersionError: the rows are of a version that cannot be read.
            GoneError: the agent does not have all of them any more.
            AgentError: it does not answer.
        """
        try:
            table = self._rows(request, seconds)
            check_origin(table, agent, request)
        except ValueError as error:
            raise self._error(f"its rows are not those that were asked for: {error}", Reason.PROTOCOL) from error
        except AgentError as error:
            if error.reason == Reason.GONE:
                raise GoneError(str(error)) from error
            raise
        return table

    def _rows(self, request: Range, seconds: float, most: int = ANSWER_BYTES) -> pa.Table:
        rows = self._tables(self._messages(Call.EVENTS, request.encode(), seconds, most))
        try:
            return as_events(pa.concat_tables(rows))
        except ValueError as error:
            raise VersionError(
                f"agent at {self.address}: its rows cannot be read, {error}; it is segtail {self._version}, this job is segtail "
                f"{streaming.__version__}: upgrade the older one; if both are of one build, this is an error of segtail: report it"
            ) from error

    # --- parts of segments, which are read at once

    def topics(self) -> list[str]:
        """The names of all topics that the agent has a log of."""
        return self._excerpts(ExcerptsRequest(excerpt_bytes=0, only_topics=True)).topics

    def excerpts(self, request: ExcerptsRequest) -> Excerpts:
        """All excerpts that are asked for, as one message.

        Raises:
            AgentError: it does not answer, or is of a version that does not know excerpts.
        """
        return self._excerpts(request)

    def _excerpts(self, request: ExcerptsRequest) -> Excerpts:
        excerpts: list[Excerpt] = []
        some = None
        try:
            for message in self._messages(Call.EXCERPTS, request.encode(), LISTING_SECONDS):
                some = Excerpts.decode(message)
                excerpts += some.excerpts
        except AgentError as error:
            raise self._named(error) from error
        if some is None or not some.last:
            raise self._error("its answer about excerpts has no end", Reason.PROTOCOL)
        return replace(some, excerpts=excerpts)

    def scan(self, request: ScanRequest) -> Generator[pa.Table, None, list[UnreadPart]]:
        """The rows of excerpts; returns what was not there to be read.

        Yields:
            `streaming.common.rows.BATCHES`, `TRANSACTION_ROWS` or `streaming.common.event_row.EVENTS`.
        """
        schema = _SCANNED[Scan(request.scan)]
        end = None
        try:
            for message in self._messages(Call.SCAN, request.encode(), SCAN_SECONDS, SCAN_BYTES):
                if message[:1] == b"{":
                    end = ScanEnd.decode(message)
                else:
                    yield self._scanned(message, schema)
        except AgentError as error:
            raise self._named(error) from error
        if end is None:
            raise self._error("its rows have no end", Reason.PROTOCOL)
        return end.unread

    def _scanned(self, message: bytes, schema: pa.Schema) -> pa.Table:
        try:
            rows = read_stream(message)
            return as_events(rows) if schema is EVENTS else cast_columns(rows, schema)
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise self._error(f"its rows cannot be read ({error}): are both of the same version?", Reason.PROTOCOL) from error

    def owners(self, request: OwnersRequest) -> list[pa.Table]:
        """Which transactional ids producer ids were given to (`PRODUCER_OWNERS`), by the coordinators' logs that the agent has."""
        return [self._scanned(message, PRODUCER_OWNERS) for message in self._messages(Call.OWNERS, request.encode(), LISTING_SECONDS)]

    # --- positions

    def reach(self, request: ReachRequest) -> Reached:
        """Ask how far logs can be read from positions on."""
        seconds = (LISTING_SECONDS if request.first else REACH_SECONDS) + request.wait_ms / 1000
        return self._ask(Call.REACH, self._positioned(request), Reached, seconds, POSITIONS_MESSAGE_BYTES)

    def between(self, request: BetweenRequest) -> Between:
        """All that lies between two positions of logs, as one message."""
        excerpts: list[Excerpt] = []
        missing: list[Missing] = []
        some = None
        try:
            for message in self._messages(Call.BETWEEN, self._positioned(request), LISTING_SECONDS):
                some = Between.decode(message)
                excerpts += some.excerpts
                missing += some.missing
        except AgentError as error:
            raise self._named(error) from error
        if some is None or not some.last:
            raise self._error("its answer about what lies between positions has no end", Reason.PROTOCOL)
        return replace(some, excerpts=excerpts, missing=missing)

    def _positioned(self, request: ReachRequest | BetweenRequest) -> bytes:
        body = request.encode()
        if len(body) > POSITIONS_BYTES:
            size = f"the positions of its logs are {len(body) >> 20} MiB, and an agent takes {POSITIONS_BYTES >> 20}"
            raise self._error(f"{size}: read fewer topics in one query", Reason.FAILED)
        return body

    # --- consumer groups

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        """The changes of the coordinators' logs since the versions that the request names; everything without one."""
        messages = self._messages(Call.GROUPS, (request or GroupsRequest()).encode(), GROUPS_SECONDS)
        try:
            return read_groups(messages)
        except AgentError as error:
            raise self._named(error) from error

    def positions(self, questions: pa.Table) -> pa.Table:
        """The positions of offsets (`POSITIONS`), one row for each row of ``questions`` (`POSITIONS_ASKED`), in the same order."""
        found = [POSITIONS.empty_table()]
        for begin in range(0, questions.num_rows, MOST_POSITIONS):
            part = questions.slice(begin, MOST_POSITIONS).select(POSITIONS_ASKED.names).cast(POSITIONS_ASKED)
            answers = self._messages(Call.POSITIONS, PositionsRequest.of(part).encode(), POSITIONS_SECONDS)
            try:
                rows = pa.concat_tables([POSITIONS.empty_table(), *(read_table(answer, POSITIONS) for answer in answers)])
            except AgentError as error:
                raise self._named(error) from error
            if rows.num_rows != part.num_rows:
                raise self._error(f"it answers {rows.num_rows} of {part.num_rows} positions", Reason.PROTOCOL)
            found.append(rows)
        return pa.concat_tables(found)

    def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
        """How many records each log has, of those in which this has changed since the version that the request names."""
        messages = list(self._messages(Call.RECORDS, (request or RecordsRequest()).encode(), GROUPS_SECONDS))
        try:
            return read_records(messages)
        except AgentError as error:
            raise self._named(error) from error

    def batch(self, request: BatchRequest) -> BatchCheck:
        """Check the batch at an offset, as it is on disk."""
        return self._ask(Call.BATCH, request.encode(), BatchCheck, POSITIONS_SECONDS)

    def _messages(self, call: str, body: bytes, seconds: float, most: int = ANSWER_BYTES, *, single: bool = False) -> Iterator[bytes]:
        """The messages of an answer, which has ``most`` bytes."""
        try:
            yield from self._open().call(call, body, seconds, most, self._headers(), single=single)
        except AgentError as error:
            raise self._named(error) from error
        except (Refusal, OSError, HTTPException) as error:
            raise self._failed(error) from error

    def _tables(self, messages: Iterable[bytes]) -> Iterator[pa.Table]:
        try:
            for message in messages:
                yield read_stream(message)
        except pa.ArrowException as error:
            raise self._error(f"its rows cannot be read ({error}): are job and agent of the same version?", Reason.PROTOCOL) from error

    def _named(self, error: AgentError) -> AgentError:
        """The error with the address of the agent."""
        return error if self.address in str(error) else AgentError(f"agent at {self.address}: {error}", error.reason)

    def _ask(self, call: str, body: bytes, kind: type[_Answer], seconds: float, most: int = MESSAGE_BYTES) -> _Answer:
        message = self._one(call, body, seconds, most)
        try:
            return kind.decode(message)
        except AgentError as error:
            raise self._named(error) from error

    def _one(self, call: str, body: bytes, seconds: float, most: int = MESSAGE_BYTES) -> bytes:
        (message,) = self._messages(call, body, seconds, most, single=True)
        return message

    def _open(self) -> Connections:
        """The connection; the caller holds it until its call has ended."""
        credentials = self._credentials()
        with self._lock:
            # where the files have changed, use their content from now on
            if self._connection is None or self._connected_with is not credentials:
                if self._connection is not None:
                    self._connection.close()
                self._connection = self._connect(credentials)
                self._connected_with = credentials
            return self._connection

    def _connect(self, credentials: Credentials) -> Connections:
        try:
            target = Target.parse(self.address)
        except ValueError as error:
            raise self._error(f"no such address, write {error}", Reason.FAILED) from error
        host, port = target.address.host, target.address.port
        if target.scheme is Scheme.PLAIN:
            if credentials.token is not None and not is_loopback(host):
                raise self._error("the token is not sent there without TLS: write https:// and name --agent-ca", Reason.UNTRUSTED)
            return Connections(host, port, clock=self._clock)
        if credentials.ca is None:
            raise self._error("TLS needs the certificates of its CA: name --agent-ca", Reason.UNTRUSTED)
        return Connections(host, port, _context(credentials.ca, self._files), target.name, self._clock)

    def _credentials(self) -> Credentials:
        try:
            return credentials(self._files).get()
        except UsageError as error:
            raise self._error(str(error), Reason.FAILED) from error

    def _headers(self) -> tuple[tuple[str, str], ...]:
        token = self._credentials().token
        return () if token is None else (header_of(token),)

    def _failed(self, error: Exception) -> AgentError:
        target = Target.parse(self.address)
        reason, meaning = _explained(error, target.name or target.address.host, sends_token=self._credentials().token is not None)
        log.debug("a call failed", extra={"address": self.address, "error": str(error)})
        return self._error(meaning, reason)

    def _error(self, what: str, reason: Reason) -> AgentError:
        return AgentError(f"agent at {self.address}: {what}", reason)

    def close(self) -> None:
        """Let the connection go; the next call opens another. It is closed with the last call that holds it."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Connections:
    """HTTP connections to one agent: each call takes one that is idle, or makes one, and keeps it for the next call. Thread-safe.

    Connections to one agent, by the standard library's client: one for each call that runs, kept for the next.

    Args:
        context: for TLS, None without it.
        name: that in the agent's certificate, if it is not the host's.
        clock: seconds of a clock that only goes forward.
    """

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None = None, name: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make: Callable[[], _Connection] = lambda: _Connection(host, port, context, name or host)
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._closed = False
        weakref.finalize(self, _close, self._idle)

    def close(self) -> None:
        """Close all without a call; the others are closed when theirs has ended."""
        with self._lock:
            self._closed = True
            _close(self._idle)

    def call(self, name: str, request: bytes, seconds: float, most: int, headers: Headers, *, single: bool) -> Iterator[bytes]:
        """The messages of the answer, or its ``single`` one. It ends after so many ``seconds``, and has ``most`` bytes with all around it.

        An agent ends its connections now and then, and a call may be on its way: one without any answer is made once more, over another.

        Raises:
            OSError, http.client.HTTPException: there is none.
            AgentError: it is none.
            Refusal: the agent refuses.
        """
        bounds = Bounds(self._clock() + seconds, most, self._clock)
        connection, answer = self._begun(name, request, dict(headers), bounds)
        try:
            if answer.status != HTTPStatus.OK:
                raise refusal_of(answer.read(MOST_REFUSAL), answer.status)
            for message in messages_of(answer.read, most, single=single):
                bounds.count(_OBJECT_BYTES)
                yield message
            if not answer.read(1) and not answer.will_close:
                connection = self._keep(connection)
        finally:
            answer.close()  # it holds the socket, too, and an error holds it
            if connection is not None:
                connection.close()

    def _begun(
        self, name: str, request: bytes, headers: dict[str, str], bounds: Bounds
    ) -> tuple[_Connection | None, http.client.HTTPResponse]:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            with suppress(ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
                return kept, kept.asked(name, request, headers, bounds)
        made = self._make()
        return made, made.asked(name, request, headers, bounds)

    def _keep(self, connection: _Connection | None) -> _Connection | None:
        with self._lock:
            if self._closed or connection is None or len(self._idle) >= _KEPT:
                return connection
            self._idle.append(connection)
            return None


class _Connection(http.client.HTTPConnection):
    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, name: str) -> None:
        super().__init__(host, port)
        self._context, self._name = context, name

    def asked(self, call: str, request: bytes, headers: dict[str, str], bounds: Bounds) -> http.client.HTTPResponse:
        """The head of the answer."""
        try:
            if self.sock is None:
                self._connect(bounds)
            cast(BoundedSocket, self.sock).bounds = bounds
            with suppress(
                ConnectionResetError, BrokenPipeError, ssl.SSLEOFError
            ):  # an agent refuses before all is sent: its reason can be read
                self.request("POST", PATH + call, request, headers)
            return self.getresponse()
        except BaseException:
            self.close()
            raise

    def _connect(self, bounds: Bounds) -> None:
        self.sock = plain = connect(self.host, self.port, bounds)
        if self._context is None:
            return
        try:
            self.sock = with_tls(plain, self._context, self._name)
        except (TimeoutError, ssl.SSLEOFError) as error:  # a server without TLS waits for the rest of a request, or ends
            raise ssl.SSLError("no handshake") from error


def _close(idle: list[_Connection]) -> None:
    while idle:
        idle.pop().close()


@dataclass(frozen=True, slots=True)
class Credentials:
    """The current content of these files."""

    ca: bytes | None
    pair: Pair | None
    token: Token | None

    def __repr__(self) -> str:
        return "Credentials()"  # a traceback shows no secret


@cache
def credentials(files: ClientFiles) -> Reloading[Credentials]:
    """The credentials of this process, read again when a file changes.

    Raises:
        UsageError: a file cannot be used.
    """
    if (files.cert is None) != (files.key is None):
        raise UsageError("--agent-cert and --agent-key belong together: name both")
    found = Reloading(lambda: (_read_credentials(files), [path for path in (files.ca, files.cert, files.key, files.token_file) if path]))
    found.get()
    return found


def _read_credentials(files: ClientFiles) -> Credentials:
    return Credentials(
        None if files.ca is None else read_ca(files.ca, "--agent-ca"),
        None if files.cert is None or files.key is None else read_pair(files.cert, files.key, "--agent-cert, --agent-key"),
        None if files.token_file is None else read_tokens(files.token_file, "--agent-token-file")[0],
    )


def _context(ca: bytes, files: ClientFiles) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(cadata=ca.decode("ascii", "replace"))
    if files.cert is not None and files.key is not None:
        made.load_cert_chain(files.cert, files.key)
    return made


def _explained(error: Exception, host: str, *, sends_token: bool) -> tuple[Reason, str]:
    """The reason for which a call to the agent of this name failed, and its explanation.

    Why a call failed: one word for metrics, and a sentence that names what to check.
    """
    match error:
        case Refusal():
            return _of_refusal(error, sends_token=sends_token)
        case TimeoutError():
            return Reason.SILENT, "it does not answer in time"
        case ssl.SSLError():
            return _of_tls(error, host)
        case ConnectionRefusedError():
            return Reason.REFUSED, "nobody listens there: is it running?"
        case socket.gaierror():
            return Reason.UNRESOLVED, "the name has no address"
        case ConnectionError():  # RemoteDisconnected is one, too
            return Reason.PROTOCOL, _CLOSED
        case BadStatusLine(args=(str(line), *_)) if line.startswith("\0"):  # a frame of HTTP/2
            return Reason.PROTOCOL, "it speaks gRPC, as agents of protocol 4 and before do: upgrade the agent"
        case HTTPException():
            return Reason.PROTOCOL, "what listens there is no agent: is it another port?"
    return Reason.FAILED, str(error)


def _of_refusal(error: Refusal, *, sends_token: bool) -> tuple[Reason, str]:
    if error.status == HTTPStatus.UNAUTHORIZED and not sends_token:
        return Reason.UNAUTHORIZED, "it asks for a token: name one with --agent-token-file"
    if error.status == HTTPStatus.UNAUTHORIZED:
        return Reason.UNAUTHORIZED, "it does not accept this job's token: compare --agent-token-file with the agent's --token-file"
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        return Reason.BUSY, f"it takes no more now ({error.words})"
    return next((reason for reason in Reason if reason == error.reason), Reason.FAILED), error.words


def _of_tls(error: ssl.SSLError, host: str) -> tuple[Reason, str]:
    match error:
        case ssl.SSLCertVerificationError(verify_code=code) if code == _EXPIRED:
            return Reason.UNTRUSTED, "its certificate has expired"
        case ssl.SSLCertVerificationError(verify_code=code) if code in _OTHER_NAME:
            return Reason.UNTRUSTED, f"its certificate is for another name than {host}"
        case ssl.SSLCertVerificationError():
            return Reason.UNTRUSTED, "its certificate is not signed by --agent-ca"
        case ssl.SSLError(reason=why) if "ALERT" in str(why):  # in TLS 1.3 a server says so after the handshake
            return Reason.PROTOCOL, "it asks for a certificate, or for another one: name one that it trusts (--agent-cert)"
        case ssl.SSLEOFError():
            return Reason.PROTOCOL, _CLOSED
    return Reason.PROTOCOL, "what listens there speaks no TLS: is it an agent without --tls-cert, or another port?"
