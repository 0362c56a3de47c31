"""The limits for a client of the HTTP servers, and the counts of what was refused.

All bounds are in one place, so that a document can have them all and a test can compare.

A "client" is an address; of IPv6 it is a network of 64 bits, because one machine has all addresses of it.
"""

from dataclasses import dataclass

HEAD_BYTES = 64 << 10
"""The most bytes of a request's line and headers together. Prometheus sends half a KiB; the standard library would take 6.4 MB."""

HEAD_SECONDS = 10.0
"""TLS handshake and head have to be complete after this time, however busy the client looks."""

CONNECTION_SECONDS = 30.0
"""A connection is cut after this time, whatever it does. Prometheus itself ends a scrape after 10 s."""

STALLED_SECONDS = 10.0
"""A client that has taken nothing of its answer for so long is cut."""

SILENT_CONNECTIONS = 256
"""The most connections without a complete request. One more cuts the oldest, of the client that has most of them."""

SILENT_PER_CLIENT = 64
"""The most of them for one client. One more cuts its oldest."""

REQUESTS = 40
"""The most requests that are being answered at a time, probes not counted. One more is refused with 503."""

REQUESTS_PER_CLIENT = 16
"""The most of them for one client."""

REQUEST_THREADS = 8
"""The threads that answer them. Pages are made one at a time in any case."""

PROBES = 64
"""The most probes that are being answered at a time: `/-/healthy` and `/-/ready`."""

PROBE_THREADS = 2
"""The threads that are kept for probes."""

READERS = 32
"""The most clients that take their answers at a time. One more cuts the one that has taken nothing for the longest time."""

READERS_PER_CLIENT = 16
"""The most of them for one client."""

ANSWER_BYTES = 512 << 20
"""The most bytes of all answers that are being taken. Beyond it, too, whoever has taken nothing for the longest time is cut."""

PASSWORDS_WAITING = 8
"""The most passwords that wait for bcrypt. One more is refused with 503: a password takes a tenth of a second of CPU on purpose."""

PASSWORDS_PER_CLIENT = 2
"""The most of them for one client, so that one that tries passwords leaves room for others."""

RIGHT_PASSWORDS = 100
"""The most right passwords that are remembered, as keyed hashes: scrapes are many. They never wait."""

WRONG_PASSWORDS = 1000
"""The most wrong passwords that are remembered, likewise, apart from the right ones."""

RETRY_SECONDS = 2
"""After so long a refused client may try again (the header `Retry-After`)."""

LINGER_BYTES = 64 << 10
"""The most bytes that are read and thrown away behind a refused request, so that its client gets the answer and no reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCounts:
    """For metrics. ``cuts``: connections that were cut before their end; ``refusals``: requests that were refused because there was too
    much to do;
    ``failures``: changes of the web config file that could not be used.
    """

    cuts: int
    refusals: int
    failures: int
