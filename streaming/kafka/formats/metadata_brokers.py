"""The registration of a broker, and the records of the metadata log that create and change it (`BrokerRegistration`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated

from streaming.kafka.formats.message_schema import Int16, Int32, Int64, Uint16, Uuid, tagged, versions
from streaming.kafka.formats.wire import Reader

_INTERNAL = re.compile("(?i)controller|replication|inter.?broker|internal")
"""Names of listeners that are mostly not for clients. No registration contains which listener brokers use among themselves."""


def _read_fencing(reader: Reader) -> bool | None:
    """Read a `BrokerRegistrationFencingChange`: -1 unfenced, 0 no change, 1 fenced."""
    change = reader.int8()
    return None if change == 0 else change > 0


def _read_shutdown(reader: Reader) -> bool:
    """Read a `BrokerRegistrationInControlledShutdownChange`: 0 no change, 1 begun."""
    return reader.int8() > 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address at which a broker listens; `security_protocol` is its number (`SecurityProtocol`)."""

    name: str
    host: str
    port: Uint16
    security_protocol: Int16


@dataclass(frozen=True, slots=True)
class BrokerFeature:
    """A feature with the levels that a broker supports."""

    name: str
    min_supported_version: Int16
    max_supported_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker has registered. `log_dirs` are the directory ids of its log dirs, empty before Kafka 3.7."""

    broker_id: Int32
    is_migrating_zk_broker: bool = versions("2+", False)
    incarnation_id: Uuid
    broker_epoch: Int64
    endpoints: tuple[Endpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = versions("1+", False)
    log_dirs: tuple[Uuid, ...] = tagged(0, "3+", ())
    cordoned_log_dirs: tuple[Uuid, ...] = tagged(1, "4+", ())

    @property
    def metadata_version(self) -> int:
        """The highest `metadata.version` that its binaries support, -1 if it names none."""
        supported = {feature.name: feature.max_supported_version for feature in self.features}
        return supported.get("metadata.version", -1)


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """A broker has left for good."""

    broker_id: Int32
    broker_epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChangeRecord:
    """A broker has changed; None means "as before". Controlled shutdown can only begin: it ends with the next registration."""

    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[bool | None, _read_fencing] = tagged(0, "0+", None)
    in_controlled_shutdown: Annotated[bool, _read_shutdown] = tagged(1, "1+", False)
    log_dirs: tuple[Uuid, ...] | None = tagged(2, "2+", None)
    cordoned_log_dirs: tuple[Uuid, ...] | None = tagged(3, "3+", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """A registered broker. A fenced one serves nothing; one in controlled shutdown is moving its leaderships to others.

    `log_dirs` are directory ids, as in `meta.properties`, empty before Kafka 3.7; `cordoned_log_dirs` take no new replicas (4.3).
    `metadata_version` as in `RegisterBrokerRecord`.
    `broker_epoch` changes with each registration. `served`: it has been unfenced since it registered; None for a fenced broker from a
    snapshot, which does not contain this. `since_ms`: the latest possible time of the last change of fencing or shutdown, Unix milliseconds
    by the controller's clock.
    """

    broker_id: int
    rack: str | None
    endpoints: tuple[Endpoint, ...]
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...]
    metadata_version: int = -1
    broker_epoch: int = field(default=-1, compare=False)
    served: bool | None = field(default=None, compare=False)  # a snapshot does not fully contain this field and the next
    since_ms: int = field(default=-1, compare=False)

    @property
    def phase(self) -> "Phase | None":
        """The phase of the broker; None if it is fenced and known from a snapshot only: then it may be starting or down."""
        if self.in_controlled_shutdown:
            return Phase.STOPPING
        if not self.fenced:
            return Phase.RUNNING
        if self.served is None:
            return None
        return Phase.DOWN if self.served else Phase.STARTING


class Phase(StrEnum):
    """The phase of a registered broker. After a clean stop, a broker stays ``STOPPING`` until it registers again."""

    RUNNING = "running"
    STARTING = "starting"  # registered again, and not unfenced since
    STOPPING = "stopping"  # in controlled shutdown, or ended by one
    DOWN = "down"  # fenced after it had served: no heartbeats, or it was stopped while it led nothing, which looks the same


def registered(record: RegisterBrokerRecord, at_ms: int, before: BrokerState | None = None) -> BrokerState:
    """The state of a broker that has just registered. If it registers repeatedly without serving, it is starting since the first time."""
    goes_on = before is not None and before.phase is Phase.STARTING and record.fenced
    return BrokerState(
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        rack=record.rack,
        endpoints=record.endpoints,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        cordoned_log_dirs=record.cordoned_log_dirs,
        metadata_version=record.metadata_version,
        served=not record.fenced,
        since_ms=before.since_ms if goes_on and before is not None else at_ms,
    )


def of_snapshot(broker: BrokerState) -> BrokerState:
    """The state of a broker from a snapshot: its registration there contains all changes since it registered."""
    return replace(broker, served=None if broker.fenced else True)


def changed(broker: BrokerState, change: BrokerChangeRecord, at_ms: int) -> BrokerState:
    """The state after a change."""
    fenced = broker.fenced if change.fenced is None else change.fenced
    moved = fenced != broker.fenced or (change.in_controlled_shutdown and not broker.in_controlled_shutdown)
    return replace(
        broker,
        fenced=fenced,
        served=broker.served if fenced else True,
        since_ms=at_ms if moved else broker.since_ms,
        in_controlled_shutdown=broker.in_controlled_shutdown or change.in_controlled_shutdown,
        log_dirs=broker.log_dirs if change.log_dirs is None else change.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if change.cordoned_log_dirs is None else change.cordoned_log_dirs,
    )


def server_of(broker: BrokerState | None) -> str:
    """``HOST:PORT`` of a listener that is probably for clients, "" if none is known."""
    endpoints = () if broker is None else broker.endpoints
    chosen = min(endpoints, key=lambda each: _INTERNAL.search(each.name) is not None, default=None)
    return "" if chosen is None else f"{chosen.host}:{chosen.port}"


def server_of_any(brokers: Iterable[BrokerState | None]) -> str:
    """The server of the first broker of which one is known, "" if none is."""
    return next(filter(None, map(server_of, brokers)), "")
