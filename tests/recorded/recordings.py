"""The recordings that lie in tests/data/recorded: which there have to be, whether they are current, and one of them on a disk again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from streaming.common.whole_files import write_whole
from tests.broker.install import BROKER_VERSION, KAFKA_VERSION, OLDER_VERSION
from tests.recorded import script
from tests.recorded.archive import CONFIGURATION, DamagedError, unpack
from tests.recorded.making import ANSWERS, MOMENTS

DATA = Path(__file__).parents[1] / "data" / "recorded"
MOST_BYTES = 20_000_000
"""All archives together: a clone of the repository brings them along."""

NEWEST = (KAFKA_VERSION,)
BOTH = (KAFKA_VERSION, OLDER_VERSION)
WORLDS: Mapping[str, tuple[str, ...]] = {
    "count": NEWEST,
    "disk": NEWEST,
    "dump": NEWEST,
    "groups": BOTH,
    "killed": BOTH,
    "late": NEWEST,
    "metadata": NEWEST,
    "min_isr": NEWEST,
    "moves": NEWEST,
    "rebalances": BOTH,
    "records": (BROKER_VERSION,),
    "replicated": NEWEST,
    "retention": NEWEST,
    "simulator": NEWEST,
    "versions": (BROKER_VERSION, KAFKA_VERSION, OLDER_VERSION),
    "why": NEWEST,
}
"""Each world, made by the module of its name in tests/recorded/worlds, and the versions of Kafka that it is recorded of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a recording comes from."""

    world: str
    kafka: str
    script: Mapping[str, str]  # the digest of each file that made it
    recorded: str  # when, in UTC
    sha256: str  # of the archive
    bytes: int
    asked: Sequence[str]  # each answer that is in it, and who gave it


def module(world: str) -> str:
    """What makes a world."""
    return f"tests.recorded.worlds.{world}"


def archive(world: str, version: str, data: Path = DATA) -> Path:
    """The file of a recording."""
    return data / f"{world}-{version}.tar.zst"


def provenance_file(world: str, version: str, data: Path = DATA) -> Path:
    """What lies beside it."""
    return data / f"{world}-{version}.json"


def provenance(world: str, version: str, data: Path = DATA) -> Provenance:
    """What is known of a recording.

    Raises:
        DamagedError: there is none, or it is not as it was recorded.
    """
    reported, packed = provenance_file(world, version, data), archive(world, version, data)
    if not (reported.exists() and packed.exists()):
        raise DamagedError(f"there is no recording of {world} on Kafka {version}; {to_make(world)}")
    found = Provenance(**json.loads(reported.read_bytes()))
    if hashlib.sha256(packed.read_bytes()).hexdigest() != found.sha256:
        raise DamagedError(f"{packed} is not the archive that {reported.name} describes; git brings it back, or {to_make(world)}")
    return found


def stale(world: str, version: str, data: Path = DATA, root: Path = script.ROOT) -> str | None:
    """Why a recording has to be made anew, and how; None if it is current."""
    try:
        recorded = provenance(world, version, data)
    except DamagedError as error:
        return str(error)
    now = script.digests(module(world), root)
    if changed := sorted(name for name in {*now, *recorded.script} if now.get(name) != recorded.script.get(name)):
        return f"{', '.join(changed)} changed since {world} was recorded on Kafka {version}; {to_make(world)}"
    return None


def to_make(world: str) -> str:
    """The command, as the end of a sentence."""
    return f"this makes it from a live Kafka: make record ONLY={world}"


def describe(world: str, version: str, *, made_by: Mapping[str, str], recorded: str, asked: Sequence[str], data: Path = DATA) -> None:
    """Writes the provenance of an archive that was just written."""
    content = archive(world, version, data).read_bytes()
    made = Provenance(
        world=world,
        kafka=version,
        script=made_by,
        recorded=recorded,
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        asked=asked,
    )
    write_whole(provenance_file(world, version, data), f"{json.dumps(asdict(made), indent=2)}\n".encode(), mode=0o666)


@dataclass(frozen=True, slots=True)
class Disk:
    """The log dirs of brokers, one state of them, as they were at ``now_ms``, Unix milliseconds."""

    directory: Path
    now_ms: int

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """Of all brokers."""
        return tuple(sorted(self.directory.glob("n*/d*")))

    @property
    def properties(self) -> tuple[Path, ...]:
        """The configuration of each broker."""
        return tuple(sorted(self.directory.glob(f"n*/{CONFIGURATION}")))


@dataclass(frozen=True)
class Replayed:
    """A recording below a folder of the test's own."""

    directory: Path
    version: str

    def disk(self, state: str = "disk") -> Disk:
        """The log dirs in one state."""
        return Disk(self.directory / state, self._moments[state])

    def text(self, name: str) -> str:
        """An answer as it was printed."""
        return (self.directory / ANSWERS / f"{name}.txt").read_text()

    def json(self, name: str) -> Any:
        """An answer that was kept as JSON."""
        return json.loads((self.directory / ANSWERS / f"{name}.json").read_bytes())

    @cached_property
    def _moments(self) -> dict[str, int]:
        found: dict[str, int] = self.json(MOMENTS)
        return found


def replay(world: str, version: str, directory: Path) -> Replayed:
    """Puts a recording below a folder.

    Raises:
        DamagedError: it is missing or damaged.
    """
    provenance(world, version)
    unpack(archive(world, version), directory)
    return Replayed(directory, version)
