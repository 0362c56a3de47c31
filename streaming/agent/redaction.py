"""Replaces names that may not leave the broker's host by hashes that are the same on every agent of a cluster."""

import hashlib
import hmac

_CHARACTERS = 20
PREFIX = "redacted-"


def redacted(name: str, cluster_id: str) -> str:
    """The form of a transactional id, a group, a client or a host that leaves a host where ``redact_ids`` is set; "" stays "".

    It is an HMAC-SHA256 with the cluster id as its key, cut to 80 bits; of a long name, that of its short form. So one id has one hash on
    every agent of a cluster, and another hash in another cluster. If someone has the cluster id, they can test whether a name they guess is
    there. A name that cannot be guessed cannot be read.
    """
    if not name:
        return ""
    digest = hmac.new(cluster_id.encode(), name.encode(errors="surrogateescape"), hashlib.sha256).hexdigest()
    return PREFIX + digest[:_CHARACTERS]
