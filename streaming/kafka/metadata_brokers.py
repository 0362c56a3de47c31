"""The registration of a broker, and the records of the metadata log that create and change it (`BrokerRegistration`).

Messages, flexible; (n) from version n on::

    RegisterBrokerRecord 0-4            broker i32, (2) migrating bool, incarnation uuid, broker_epoch i64, endpoints (name, host, port u16,
                                        security protocol i16), features (name, lowest i16, highest i16), rack string or null, fenced bool,
                                        (1) in controlled shutdown bool; tagged (3) 0 log dirs, (4) 1 cordoned log dirs: arrays of uuid
    UnregisterBrokerRecord 0, FenceBrokerRecord 0, UnfenceBrokerRecord 0                 broker i32, broker_epoch i64
    BrokerRegistrationChangeRecord 0-3  broker i32, broker_epoch i64; tagged 0 fencing i8, 1 shutdown i8, 2 log dirs, 3 cordoned log dirs
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from streaming.kafka.wire import Reader


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address at which a broker listens; `security_protocol` is its number (`SecurityProtocol`)."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker has registered. `log_dirs` are the directory ids of its log dirs, empty before Kafka 3.7.

    `metadata_version` is the highest `metadata.version` that its binaries support, -1 if it names none.
    """

    broker_id: int
    broker_epoch: int
    rack: str | None
    endpoints: tuple[Endpoint, ...]
    fenced: bool
    in_controlled_shutdown: bool = False
    log_dirs: tuple[str, ...] = ()
    cordoned_log_dirs: tuple[str, ...] = ()
    metadata_version: int = -1


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """A broker has left for good."""

    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChangeRecord:
    """A broker has changed; None means "as before". Controlled shutdown can only begin: it ends with the next registration."""

    broker_id: int
    fenced: bool | None = None
    in_controlled_shutdown: bool = False
    log_dirs: tuple[str, ...] | None = None
    cordoned_log_dirs: tuple[str, ...] | None = None


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


def read_register_broker(reader: Reader, version: int) -> RegisterBrokerRecord:
    """Parse a RegisterBrokerRecord."""
    broker_id = reader.int32()
    if version >= 2:
        reader.boolean()  # is migrating from ZooKeeper
    reader.uuid()  # incarnation
    broker_epoch = reader.int64()
    endpoints = tuple(_endpoint(reader) for _ in range(reader.count()))
    metadata_version = _metadata_version(reader)
    rack, fenced = reader.nullable_string(), reader.boolean()
    in_controlled_shutdown = reader.boolean() if version >= 1 else False
    log_dirs: tuple[str, ...] = ()
    cordoned_log_dirs: tuple[str, ...] = ()
    for tag, content in reader.tagged_fields():
        if tag == 0:
            log_dirs = content.uuids()
        elif tag == 1:
            cordoned_log_dirs = content.uuids()
    return RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        rack=rack,
        endpoints=endpoints,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned_log_dirs,
        metadata_version=metadata_version,
    )


def _endpoint(reader: Reader) -> Endpoint:
    endpoint = Endpoint(reader.string(), reader.string(), reader.uint16(), reader.int16())
    reader.skip_tagged_fields()
    return endpoint


def _metadata_version(reader: Reader) -> int:
    """The highest level of `metadata.version` among the features that a broker supports, -1 if it is not among them."""
    found = -1
    for _ in range(reader.count()):
        name = reader.string()
        reader.int16()  # lowest level
        highest = reader.int16()
        reader.skip_tagged_fields()
        if name == "metadata.version":
            found = highest
    return found


def read_unregister_broker(reader: Reader, _version: int) -> UnregisterBrokerRecord:
    """Parse an UnregisterBrokerRecord."""
    record = UnregisterBrokerRecord(reader.int32())
    reader.int64()  # broker epoch
    reader.skip_tagged_fields()
    return record


def fencing_reader(fenced: bool) -> Callable[[Reader, int], BrokerChangeRecord]:
    """Return the parser of a record that fences a broker, or unfences it."""

    def parse(reader: Reader, _version: int) -> BrokerChangeRecord:
        record = BrokerChangeRecord(broker_id=reader.int32(), fenced=fenced)
        reader.int64()  # broker epoch
        reader.skip_tagged_fields()
        return record

    return parse


def read_broker_change(reader: Reader, _version: int) -> BrokerChangeRecord:
    """Parse a BrokerRegistrationChangeRecord."""
    broker_id = reader.int32()
    reader.int64()  # broker epoch
    fencing = shutdown = 0
    log_dirs: tuple[str, ...] | None = None
    cordoned_log_dirs: tuple[str, ...] | None = None
    for tag, content in reader.tagged_fields():
        if tag == 0:
            fencing = content.int8()  # -1 unfenced, 0 no change, 1 fenced (`BrokerRegistrationFencingChange`)
        elif tag == 1:
            shutdown = content.int8()  # 0 no change, 1 begun (`BrokerRegistrationInControlledShutdownChange`)
        elif tag == 2:
            log_dirs = content.uuids()
        elif tag == 3:
            cordoned_log_dirs = content.uuids()
    return BrokerChangeRecord(
        broker_id=broker_id,
        fenced=None if fencing == 0 else fencing > 0,
        in_controlled_shutdown=shutdown > 0,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned_log_dirs,
    )


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
