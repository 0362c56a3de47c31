"""Names that clients have chosen, in other forms: of a long one its beginning and a hash, of one that has to stay on its host a hash alone.

Kafka bounds names of topics alone. A name of a group, a client, a host or a transactional id may have 32 KiB, and would be in every series,
row and line. So whatever reads one from a log takes its short form at once, and nothing behind it has the long one.

A short form is never another name as it is: a name that is written like one gets a short form, too. So two names stay two.
"""

import hashlib
import hmac
import re

LONGEST_NAME = 250
"""A name with more characters is shortened; one of a topic has 249 at most."""

SHORT_CHARS = 100
_HASH_CHARS = 20
_BEGINNING_CHARS = SHORT_CHARS - _HASH_CHARS - 1

_SHORT_FORM = re.compile(rf".{{{_BEGINNING_CHARS}}}~[0-9a-f]{{{_HASH_CHARS}}}", re.DOTALL)

_CHARACTERS = 20
PREFIX = "redacted-"


def possible_names(given: str) -> tuple[str, ...]:
    """What a name that a reader gives may be called here: it is the whole name, or the short form as it was shown."""
    return (given, short_name(given)) if is_short_form(given) else (short_name(given),)


def short_name(name: str) -> str:
    """The name, or its short form if it is long: 79 characters, ``~`` and 80 bits of its SHA-256."""
    if len(name) <= LONGEST_NAME and not is_short_form(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{name[:_BEGINNING_CHARS]}~{digest[:_HASH_CHARS]}"


def is_short_form(name: str) -> bool:
    """Whether a name that `short_name` has returned stands for a longer one, of which Kafka's tools need the whole."""
    return len(name) == SHORT_CHARS and _SHORT_FORM.fullmatch(name) is not None


def redacted(name: str, cluster_id: str) -> str:
    """The form of a transactional id, a group, a client or a host that leaves a host where ``redact_ids`` is set; "" stays "".

    It is an HMAC-SHA256 with the cluster id as its key, cut to 80 bits; of a long name, that of its short form. So one id has one hash on
    every agent of a cluster, and another hash in another cluster. A reader who has the cluster id can test whether a name they guess is
    there. A name that cannot be guessed cannot be read.
    """
    if not name:
        return ""
    digest = hmac.new(cluster_id.encode(), name.encode(errors="surrogateescape"), hashlib.sha256).hexdigest()
    return PREFIX + digest[:_CHARACTERS]
