"""How files are written: those that grow are held open, small text files are replaced whole (`CheckpointFile`, `PropertiesUtils`)."""

import base64
import os
import weakref
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID


class Handle:
    """A file held open for writing, created where there is none; let go by ``close()``, or when nobody holds the handle any more."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.close = weakref.finalize(self, os.close, self.fd)


def replace_file(path: Path, content: bytes) -> None:
    """Write ``<name>.tmp`` and rename it, as Kafka does; without its fsync, because nothing here has to survive a power loss."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    temporary.rename(path)


def uuid_text(value: UUID) -> str:
    """An id as Kafka writes it: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def encode_checkpoint(entries: Iterable[tuple[str, int, int]]) -> bytes:
    """An offset checkpoint: (topic, partition, offset) a line."""
    lines = [f"{topic} {partition} {offset}\n" for topic, partition, offset in entries]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def encode_leader_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """A ``leader-epoch-checkpoint``: (epoch, start offset) a line, ascending."""
    lines = [f"{epoch} {start}\n" for epoch, start in epochs]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """A ``partition.metadata``; it has no newline at its end."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def encode_meta_properties(node_id: int, cluster_id: str, directory_id: UUID, written: str) -> bytes:
    """A ``meta.properties`` of a KRaft node; ``written`` is the date that Java puts in its comment."""
    lines = (
        "#",
        f"#{written}",
        f"cluster.id={cluster_id}",
        f"directory.id={uuid_text(directory_id)}",
        f"node.id={node_id}",
        "version=1",
    )
    return "".join(f"{line}\n" for line in lines).encode()
