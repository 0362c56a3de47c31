"""Answers of the API: JSON that no browser takes for anything else, and errors as a sentence."""

from http import HTTPStatus

import cramjam

from streaming.protocol.json_message import Message
from streaming.web.handler import Answer, Request

JSON_TYPE = "application/json"

SECURED = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every answer of the API, errors too. There are none for other origins (CORS): a page elsewhere cannot read an answer."""

_SMALL = 1024
"""A body of fewer bytes is not worth packing."""


def json_answer(message: Message, request: Request) -> Answer:
    """A message."""
    body = message.encode() + b"\n"
    packs = request.gzip and len(body) > _SMALL
    packed = bytes(cramjam.gzip.compress(body, 1)) if packs else body
    return Answer(status=HTTPStatus.OK, content_type=JSON_TYPE, body=packed, gzip=packs, headers=SECURED)


def bad_request(why: str) -> Answer:
    """The client asked for something that cannot be; ``why`` is a sentence that names it."""
    return Answer(status=HTTPStatus.BAD_REQUEST, body=f"{why}\n".encode(errors="replace"), headers=SECURED)


def not_found(what: str) -> Answer:
    """There is no such thing."""
    return Answer(status=HTTPStatus.NOT_FOUND, body=f"no such {what}\n".encode(), headers=SECURED)


def unavailable(why: str) -> Answer:
    """It is not known yet."""
    return Answer(status=HTTPStatus.SERVICE_UNAVAILABLE, body=f"{why}\n".encode(), headers=SECURED)
