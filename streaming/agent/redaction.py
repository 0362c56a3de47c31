"""Names that may not leave the broker's host, as hashes that are the same on every agent of a cluster."""

import hashlib
import hmac

_CHARACTERS = 20
PREFIX = "redacted-"


def redacted(name: str, cluster_id: str) -> str:
    """A transactional id as it leaves a host where ``redact_ids`` is set; "" stays "".

    It is an HMAC-SHA256 with the cluster id as its key, cut to 80 bits: one id is one hash on every agent of a cluster, and another one
    in another cluster. Who knows the cluster id can try out names that may be there; nobody can read one that cannot be guessed.
    """
    if not name:
        return ""
    digest = hmac.new(cluster_id.encode(), name.encode(errors="surrogateescape"), hashlib.sha256).hexdigest()
    return PREFIX + digest[:_CHARACTERS]
