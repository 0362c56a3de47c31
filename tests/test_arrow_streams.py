"""Tables of Arrow from others: what takes more memory than its bytes is refused before it takes it."""

import random
import struct

import pyarrow as pa
import pytest

from streaming.common.arrow_streams import read_stream
from streaming.common.rows import COORDINATOR, pack_rows, unpack_entries
from tests.fuzz.mutation import mutated
from tests.tables import each_row

CODECS = ["lz4", "zstd"]
ROWS = pa.table({"number": pa.array([1, 2, 3] * 1000), "text": pa.array(["a", "", "c"] * 1000), "list": pa.array([[1], None, []] * 1000)})
_END = b"\xff\xff\xff\xff\0\0\0\0"
ZEROS = pa.table({"x": [bytes(1 << 20)]})


def stream(table: pa.Table, codec: str | None = None, version: pa.MetadataVersion = pa.MetadataVersion.V5) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec, metadata_version=version)) as writer:
        writer.write_table(table)
    return bytes(memoryview(sink.getvalue()))


def entries(count: int = 2) -> pa.RecordBatch:
    row = dict.fromkeys(COORDINATOR.names, 1) | {"transactional_id": "t" * 1000, "state": "Empty", "partitions": ["a-1"]}
    return pa.RecordBatch.from_pylist([row] * count, COORDINATOR)


@each_row("table", [ROWS, ROWS.slice(0, 0), ROWS.slice(7, 9), pa.table({"x": pa.nulls(3)}), ZEROS])
def test_what_nobody_has_compressed_is_read(table: pa.Table) -> None:
    for version in (pa.MetadataVersion.V4, pa.MetadataVersion.V5):
        assert read_stream(stream(table, version=version)).equals(table)
        assert read_stream(pa.py_buffer(stream(table, version=version))).equals(table)


@each_row("codec", CODECS)
def test_compressed_buffers_are_refused(codec: str) -> None:
    data = stream(ZEROS, codec)
    assert len(data) < 16 << 10
    with pytest.raises(pa.ArrowInvalid, match="its buffers are compressed"):
        read_stream(data)


@each_row("codec", CODECS)
def test_compressed_dictionaries_are_refused(codec: str) -> None:
    words = pa.table({"x": pa.array(["w" * 1000] * 3).dictionary_encode()})
    assert read_stream(stream(words)).equals(words)
    with pytest.raises(pa.ArrowInvalid, match="its buffers are compressed"):
        read_stream(stream(words, codec))


def test_compression_as_it_was_at_first_is_refused() -> None:
    batch = ROWS.combine_chunks().to_batches()[0]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(metadata_version=pa.MetadataVersion.V4)) as writer:
        writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "zstd"})
    with pytest.raises(pa.ArrowInvalid, match="its buffers are compressed"):
        read_stream(bytes(memoryview(sink.getvalue())))


@each_row("codec", CODECS)
def test_packed_entries_that_are_compressed_are_refused(codec: str) -> None:
    assert unpack_entries(pack_rows(entries())).equals(entries())
    with pytest.raises(pa.ArrowInvalid, match="its buffers are compressed"):
        unpack_entries(_serialized(entries(1000), codec))


def _serialized(batch: pa.RecordBatch, codec: str) -> bytes:
    data = stream(pa.Table.from_batches([batch]), codec)
    _, message = pa.ipc.MessageReader.open_stream(data)
    return bytes(memoryview(message.serialize()))


def test_columns_that_share_a_buffer_are_refused() -> None:
    table = pa.table({name: pa.array([number] * 1000) for number, name in enumerate("abcd")})
    data = stream(table)
    for place in range(1, 4):
        at = data.rindex(
            struct.pack("<qq", 8000 * place, 8000)
        )  # the first such numbers may be the end of one place and the next one's beginning
        data = data[:at] + struct.pack("<qq", 0, 8000) + data[at + 16 :]
    assert pa.ipc.open_stream(data).read_all()["d"].to_pylist() == [0] * 1000  # as Arrow reads it
    with pytest.raises(pa.ArrowInvalid, match="its columns are 32000 bytes, out of"):
        read_stream(_shortened(data, 24_000))


def _shortened(data: bytes, size: int) -> bytes:
    """The stream without ``size`` bytes of the body that nothing leads to any more."""
    body, end = struct.pack("<q", 32_000), len(_END)
    assert data.count(body) == 1
    assert data.endswith(_END)
    return data.replace(body, struct.pack("<q", 32_000 - size))[: -size - end] + _END


def test_damaged_streams_are_refused_or_read() -> None:
    chance = random.Random(1)
    seeds = [stream(ROWS.slice(0, 5)), stream(ROWS.slice(0, 5), "zstd"), stream(pa.table({"x": pa.array(["a"] * 3).dictionary_encode()}))]
    refused = 0
    for _ in range(3000):
        data = mutated(chance.choice(seeds), chance.choice(seeds), chance)
        try:
            assert read_stream(data).nbytes <= len(data)
        except pa.ArrowException:
            refused += 1
    assert 0 < refused < 3000
