"""Unpacks what another process has packed with zlib, to a bound: whoever sends it may have been taken over."""

import zlib


def inflate(packed: bytes, limit: int) -> bytes:
    """What was packed.

    Raises:
        ValueError: it is no whole stream of zlib, or holds more than ``limit`` bytes.
    """
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(packed, limit)
        if not stream.eof and (stream.unconsumed_tail or stream.decompress(b"", 1)):
            raise ValueError(f"it holds more than {limit} bytes")
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not stream.eof:
        raise ValueError("it is cut short")
    return data
