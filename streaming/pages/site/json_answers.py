"""Answers of the API: JSON that no browser takes for anything else, and errors as a sentence."""

from http import HTTPStatus

import cramjam

from streaming.broker.protocol.json_message import Message
from streaming.common.web.messages import HttpRequest, Response, sentence

JSON_TYPE = "application/json"

_SMALL = 1024
"""A body of fewer bytes is not worth packing."""


def json_answer(message: Message, request: HttpRequest) -> Response:
    """A message."""
    body = message.encode() + b"\n"
    packs = request.gzip and len(body) > _SMALL
    packed = bytes(cramjam.gzip.compress(body, 1)) if packs else body
    return Response(status=HTTPStatus.OK, content_type=JSON_TYPE, body=packed, gzip=packs)


def bad_request(why: str) -> Response:
    """The client asked for something that cannot be; ``why`` is a sentence that names it."""
    return sentence(HTTPStatus.BAD_REQUEST, why)


def not_found(what: str) -> Response:
    """There is no such thing."""
    return sentence(HTTPStatus.NOT_FOUND, f"no such {what}")


def unavailable(why: str) -> Response:
    """It is not known yet."""
    return sentence(HTTPStatus.SERVICE_UNAVAILABLE, why)
