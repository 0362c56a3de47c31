"""What each field of a message for people means: the comment behind it in the class of the message."""

import re
from inspect import getsource

from streaming.broker.protocol.json_message import PublicMessage

_FIELD = re.compile(r" {4}(\w+): ")


def meanings(kind: type[PublicMessage]) -> dict[str, str]:
    """What each field means, by its name: the comment behind it, which goes on in the lines below; "" where there is none.

    "likewise" stands for what the field before means.
    """
    found: dict[str, str] = {}
    for base in (each for each in reversed(kind.__mro__) if issubclass(each, PublicMessage)):
        name = meant = ""
        for line in getsource(base).splitlines():
            code, mark, comment = line.partition("#")
            if field := _FIELD.match(code):
                name, meant = field[1], meant if comment.strip() == "likewise" else comment.strip()
            elif name and mark and not code.strip():
                meant = f"{meant} {comment.strip()}"
            else:
                name = ""
            if name:
                found[name] = meant
    return found
