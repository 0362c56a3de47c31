"""Values that are secrets, as their names show, stand for themselves nowhere: neither in `segtail config` nor in an error."""

import re

MASK = "*********(masked)"

_SECRET = re.compile(r"secret|passw|token|credential|(access|account|encryption|private)[._-]?key|://[^/@\s]*:[^/@\s]*@", re.IGNORECASE)
"""As `spark.redaction.regex`, and some more. A value may name a secret too: ``-Djavax.net.ssl.trustStorePassword=...``."""


def masked(name: str, value: object) -> object:
    """The value of an option, or of a mapping of options: each secret in it is replaced."""
    if isinstance(value, dict):
        return {key: masked(str(key), item) for key, item in value.items()}
    return MASK if value and (_SECRET.search(name) or (isinstance(value, str) and _SECRET.search(value))) else value
