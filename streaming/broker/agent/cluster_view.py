"""The state of the cluster (leaders, replicas, topics, brokers), from the metadata logs in the log dirs, as each broker has read them."""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import chain, islice

from streaming.broker.agent.topic_configs import TopicConfigs
from streaming.broker.disk.availability import DirsOf, LogDirs
from streaming.broker.disk.broker_processes import was_shut_down_cleanly
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.metadata_log import MetadataLog, MetadataPast, read_quorum_state
from streaming.broker.protocol.cluster_messages import (
    AffectedPartition,
    Led,
    MetadataChange,
    MetadataChanges,
    PartitionCounts,
    PartitionName,
    Reassignment,
    Registered,
    TopicCounts,
)
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.broker.watcher.cluster_knowledge import LEADER_UNKNOWN as LEADER_UNKNOWN
from streaming.broker.watcher.cluster_knowledge import Leads
from streaming.common.log_key import LogKey
from streaming.errors import FormatError
from streaming.kafka.formats.admin_changes import AdminLog
from streaming.kafka.formats.checkpoint_files import QuorumState
from streaming.kafka.formats.cluster_image import ClusterImage, Topic
from streaming.kafka.formats.metadata_partitions import Begun, PartitionState, UncleanElection
from streaming.kafka.formats.metadata_records import BrokerState, server_of
from streaming.kafka.formats.names import METADATA_TOPIC, TRANSACTION_TOPIC
from streaming.rules.config_values import Configs
from streaming.rules.limits import KAFKA_3_7, Limits, limits_of
from streaming.rules.restart_cost import recovery_threads

log = logging.getLogger(__name__)

MOST_RECOVERING = 1_000
"""The most partitions that are named while they recover from an unclean election."""

_NOTHING = Configs()

IDLE_MS = 5_000
"""If a controller writes at least this often while nothing happens, every metadata log keeps growing."""

SEARCH_SECONDS = 0.2
"""How long one poll may read on disk for former leaders."""


class ClusterView:
    """One image for each broker, updated by `refresh`. Other threads than the watcher's only read the state of partitions.

    Partitions and brokers are taken from the most advanced image, because a broker that is down does not know yet that it leads no more.

    Args:
        configs: the configurations of a broker's topics that the metadata log does not contain.
        recalls: what is on disk from before the newest snapshot is read, too, little by little.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        configs: Callable[[int], TopicConfigs] = lambda broker: TopicConfigs(broker, None),
        *,
        recalls: bool = False,
    ) -> None:
        self._log_dirs = log_dirs
        self._recalls = recalls
        self._configs = configs
        self._followers: dict[int, _Follower] = {}
        self._meet()
        self._images: list[ClusterImage] = []  # the most advanced one first

    @property
    def _newest(self) -> ClusterImage | None:
        return self._images[0] if self._images else None

    def _meet(self) -> None:
        for broker in self._log_dirs.brokers:
            self._follower(broker)

    def _follower(self, broker: int) -> "_Follower":
        """All log dirs of a broker may be unavailable at first, although cursors in its logs are known."""
        if broker not in self._followers:
            self._followers[broker] = _Follower(broker, self._log_dirs, self._configs(broker))
        return self._followers[broker]

    def refresh(self) -> None:
        """Read the records that were appended to the metadata logs."""
        self._meet()
        for follower in self._followers.values():
            follower.refresh()
            if follower.searching or (self._recalls and follower.image is not None and not follower.searched):
                follower.search()
        images = [follower.image for follower in self._followers.values() if follower.image is not None]
        self._images = sorted(images, key=lambda image: image.next_offset, reverse=True)

    # --- of one log

    def leader(self, key: LogKey) -> tuple[int, int]:
        """(leader, leader epoch) of a partition, (-2, -1) if no broker here knows them."""
        state = self.partition(key)
        return LEADER_UNKNOWN if state is None else (state.leader, state.leader_epoch)

    def partition(self, key: LogKey) -> PartitionState | None:
        """Replicas and leader of a partition, None if no broker here knows them."""
        image = self._newest
        topic_id = _topic_id(image, key)
        return image.partition(topic_id, key.partition) if image is not None and topic_id is not None else None

    def epochs_begun(self, key: LogKey) -> Begun:
        """When leader epochs of a partition began, as far as the metadata that was read shows it."""
        topic_id = _topic_id(self._newest, key)
        known = () if topic_id is None else (image.epochs_begun(topic_id, key.partition) for image in self._images)
        return max(known, key=len, default=())

    def leads(self, key: LogKey, epoch: int) -> Leads:
        """Whether a replica's broker led in a leader epoch.

        If no metadata contains the epoch, the first assigned replica is taken as its leader.
        """
        image = self._newest
        if image is None or key.topic == METADATA_TOPIC:  # the records do not contain who leads the quorum
            return Leads.UNKNOWN
        topic_id = _topic_id(image, key) or key.topic_id
        state = image.partition(topic_id, key.partition)
        if state is not None and epoch == state.leader_epoch:
            return _is_own(key, state.leader)
        leader = self._leader_in(topic_id, key.partition, epoch)
        if leader is not None:
            return _is_own(key, leader)
        if state is None or epoch > state.leader_epoch:
            return Leads.BEHIND
        if epoch >= 0 and self._search():
            leader = self._leader_in(topic_id, key.partition, epoch)
            if leader is not None:
                return _is_own(key, leader)
            if any(follower.searching for follower in self._followers.values()):
                return Leads.SEARCHED
        return _is_own(key, state.replicas[0] if state.replicas else -1)

    def led(self, key: LogKey, epoch: int) -> Leads:
        """The same by what is in memory, for any thread: UNKNOWN where that lacks the epoch, BEHIND where that may come."""
        image = self._newest
        if image is None or key.topic == METADATA_TOPIC or epoch < 0:
            return Leads.UNKNOWN
        topic_id = _topic_id(image, key) or key.topic_id
        leader, state = self._leader_in(topic_id, key.partition, epoch), image.partition(topic_id, key.partition)
        if leader is not None:
            return _is_own(key, leader)
        return Leads.BEHIND if state is None or epoch > state.leader_epoch else Leads.UNKNOWN

    def _leader_in(self, topic_id: str, partition: int, epoch: int) -> int | None:
        known = (image.leader_in(topic_id, partition, epoch) for image in self._images)
        return next((leader for leader in known if leader is not None), None)

    def _search(self) -> bool:
        """Start to read on disk who led before the images in memory. Returns whether such a search is running or has just ended."""
        unsearched = [follower for follower in self._followers.values() if follower.image is not None and not follower.searched]
        for follower in unsearched:
            if not follower.searching:
                follower.search()
        return bool(unsearched)

    def recall(self, seconds: float) -> None:
        """Read on disk who led before the images in memory, and since when, for about so long at most."""
        ends = time.monotonic() + seconds
        self.refresh()
        self._search()
        while any(follower.searching for follower in self._followers.values()) and time.monotonic() < ends:
            for follower in self._followers.values():
                if follower.searching:
                    follower.search()

    @property
    def known(self) -> bool:
        """Whether any broker's metadata log can be read."""
        return bool(self._images)

    @property
    def of_zookeeper(self) -> bool:
        """Whether the cluster's metadata is in ZooKeeper, and so in no log dir."""
        followers = list(self._followers.values())
        return bool(followers) and all(follower.is_of_zookeeper() for follower in followers)

    def broker(self, node_id: int) -> BrokerState | None:
        """A registered broker, None if there is no such broker or that is not known."""
        return None if self._newest is None else self._newest.broker(node_id)

    def metadata_version(self, broker: int) -> int:
        """The highest metadata.version that a broker's registration supports, -1 if it names none or that is not known."""
        return -1 if self._newest is None else self._newest.metadata_version(broker)

    def recovery_threads(self, broker: int, given: Configs = _NOTHING) -> int:
        """How many threads a broker's start has for each log dir, -1 if that is not known: the default depends on its version.

        Args:
            given: what is known of its ``server.properties`` from elsewhere.
        """
        return recovery_threads(self._follower(broker).configs.of_broker.over(given), self.metadata_version(broker))

    def has_topic(self, key: LogKey) -> bool | None:
        """Whether the topic still exists, None if that is not known."""
        image = self._follower(key.broker).image
        if image is None:
            return None
        return key.topic == METADATA_TOPIC or _topic_id(image, key) is not None

    def topic_ids(self) -> Collection[str] | None:
        """The ids of all topics that exist by any broker's metadata log; None if one of the brokers does not know them."""
        images = [follower.image for follower in self._followers.values()]
        if not images or None in images:
            return None
        return {topic.topic_id for image in images if image is not None for topic in image.topics()}

    def partition_count(self, topic: str) -> int | None:
        """How many partitions a topic has: 0 if there is no such topic, None if that is not known."""
        image = self._newest
        if image is None:
            return None
        topic_id = image.topic_id(topic)
        return 0 if topic_id is None else len(image.partition_numbers(topic_id))

    def topic_names(self) -> tuple[str, ...]:
        """The names of all topics, none if they are not known."""
        return () if self._newest is None else tuple(topic.name for topic in self._newest.topics())

    def topic_name(self, topic_id: str) -> str | None:
        """The name of a topic, None if there is no such topic or that is not known."""
        return None if self._newest is None else self._newest.topic_name(topic_id)

    def rejected_configs(self) -> int:
        """The number of configuration values so far that could not be read."""
        return sum(follower.configs.rejected for follower in list(self._followers.values()))

    def topic_config(self, topic: str, name: str) -> str:
        """What a topic itself sets under a name, as the newest metadata has it; "" if it does not, or nothing is known."""
        return "" if self._newest is None else dict(self._newest.topic_configs(topic)).get(name, "")

    def configs(self, key: LogKey) -> str:
        """The settings for the topic of a log, from all levels that its broker's files contain, packed as text (`Configs.text`)."""
        return self._follower(key.broker).configs.text(key.topic)

    def limits(self, key: LogKey) -> Limits:
        """The limits of a log, as far as they are known."""
        return limits_of(key.topic, self.configs(key))

    def version(self) -> int:
        """A number that changes whenever the known partitions or configurations may have changed."""
        return sum(follower.version for follower in self._followers.values())

    def unclean_elections(self) -> list[UncleanElection]:
        """Unclean elections that were read since the last call and whose new leader has its log dirs here."""
        return [election for follower in list(self._followers.values()) for election in follower.take_elections()]

    # --- of one broker

    def unreadable(self) -> list[int]:
        """Brokers whose metadata log is not there or cannot be read."""
        return [broker for broker, follower in list(self._followers.items()) if follower.image is None]

    def past_errors(self) -> dict[int, str]:
        """Why what was before the newest snapshot could not be read, of brokers whose metadata log is readable from there on."""
        return {broker: each.past_error for broker, each in list(self._followers.items()) if each.past_error and each.image is not None}

    def statuses(self) -> list[BrokerStatus]:
        """The state of the cluster in each broker's copy of the metadata log."""
        return [follower.status(self._log_dirs_of(broker)) for broker, follower in list(self._followers.items())]

    def _log_dirs_of(self, broker: int) -> list[str]:
        state = None if self._newest is None else self._newest.broker(broker)
        return [] if state is None else list(state.log_dirs)

    def hosts(self, log_dir: LogDir, live: Iterable[tuple[str, int]]) -> bool:
        """Whether one of these partitions, whose directories are in this log dir, has a replica here, as far as that is known.

        A directory may be left over: its topic was deleted, or its replica is on another broker or in another log dir by now.
        """
        image = self._newest
        return any(image is None or _is_hosted(image, log_dir, *partition) for partition in live)

    def lists(self, log_dir: LogDir) -> bool | None:
        """Whether the registration of a log dir's broker lists this log dir, None if that is not known (before Kafka 3.7)."""
        state = None if self._newest is None else self._newest.broker(log_dir.broker)
        if state is None or not state.log_dirs or log_dir.directory_id is None:
            return None
        return log_dir.directory_id in state.log_dirs


class _Follower:
    """Follows the metadata log of one broker, which is in one of its log dirs."""

    def __init__(self, broker: int, log_dirs: LogDirs, configs: TopicConfigs) -> None:
        self.image: ClusterImage | None = None
        self.configs = configs
        self.version = 0
        self._broker = broker
        self._log_dirs = log_dirs.of(broker)
        self._metadata_dirs = DirsOf(log_dirs, broker, metadata=True)
        self._log = MetadataLog(self._metadata_dirs)
        self._complained = ""
        self._changes = (0, 0)  # changes of the image at the last refresh
        self._led: list[Led] = []
        self._hosts: set[int] = set()  # brokers with a replica
        self._counter = PartitionCounter(lambda topic: _min_isr(configs.of(topic)))
        self._counts = self._counts_name = ""
        self._counted_at = -1  # the version at which they were counted
        self._admin: tuple[AdminLog | None, int] = (None, -1)  # whose changes are packed, and at which version of it
        self._changes_packed = self._changes_name = ""
        self._elections: list[UncleanElection] = []
        self._past: MetadataPast | None = None
        self.searched = False  # all former leaders that are on disk are in the image
        self.past_error = ""  # why what was before the image could not be read

    def take_elections(self) -> list[UncleanElection]:
        """Unclean elections of this broker that were read since the last call."""
        taken, self._elections = self._elections, []
        return taken

    def _take_elections_of(self, image: ClusterImage) -> None:
        self._elections += [each for each in image.take_unclean_elections() if each.leader == self._broker]

    @property
    def searching(self) -> bool:
        """Whether former leaders are being read from disk."""
        return self._past is not None

    def search(self) -> None:
        """Read on disk who led before the image began, for at most `SEARCH_SECONDS`."""
        assert self.image is not None
        try:
            self._past = self._past or self._log.past()
            older = ClusterImage() if self._past is None else self._past.advance(SEARCH_SECONDS)
        except (OSError, FormatError) as error:
            log.warning(
                "former leaders are not known: an older part of the metadata log cannot be read",
                extra={"broker": self._broker, "error": str(error)},
            )
            older, self.past_error = ClusterImage(), str(error)
        if older is not None:
            self.image.recall(older)
            self._take_elections_of(older)
            self._end_search(searched=True)

    def _end_search(self, *, searched: bool) -> None:
        if self._past is not None:
            self._past.close()
        self._past, self.searched = None, searched

    def refresh(self) -> None:
        before = self.image
        try:
            self.image = self._log.advance(self.image)
            self._complained = ""
        except (OSError, FormatError) as error:
            self.image = None
            self._log.restart()
            if str(error) != self._complained:  # refreshed several times a second: logged once
                self._complained = str(error)
                if self.is_of_zookeeper():  # nothing can be done about it
                    log.info("the metadata is in ZooKeeper and in no log dir: leaders are not known", extra={"broker": self._broker})
                else:
                    extra = {"broker": self._broker, "error": str(error)}
                    log.warning("the metadata log cannot be read: leaders are not known", extra=extra)
        if self.image is not None:
            self._take_elections_of(self.image)
        if self.image is not before:
            self.past_error = ""
            self._end_search(searched=False)
            # it leads after an unclean election that a snapshot may have hidden
            if self.image is not None and any(state.recovering and state.leader == self._broker for state in self.image.partitions()):
                self.search()
        changes = (0, 0) if self.image is None else (self.image.changes, self.image.config_changes)
        if self.image is not before or changes != self._changes:
            self._changes = changes
            self.configs.refresh(self.image)
            self.version += 1

    def status(self, registered_log_dirs: list[str]) -> BrokerStatus:
        image, quorum = self.image, self._quorum_state()
        self._count()
        self._pack_changes()
        return BrokerStatus(
            broker=self._broker,
            readable=image is not None,
            metadata_offset=-1 if image is None else image.next_offset,
            registered=[] if image is None else [_registered(each, each.broker_id in self._hosts) for each in image.brokers()],
            controller=-1 if quorum is None else quorum.leader_id,
            led=self._led,
            transaction_partitions=None if image is None else len(image.partition_numbers(image.topic_id(TRANSACTION_TOPIC) or "")),
            counts_name=self._counts_name,
            counts=self._counts,
            appended_ms=self._appended_ms(),
            log_dirs=registered_log_dirs,
            expected=not self.is_of_zookeeper(),
            snapshot=self._log.can_begin_again(),
            clean=any(was_shut_down_cleanly(log_dir.path) for log_dir in self._log_dirs),
            changes_name=self._changes_name,
            changes=self._changes_packed,
            voters=list((image is not None and image.voters) or (quorum.voters if quorum else ())),
        )

    def _count(self) -> None:
        """Count the partitions again if anything has changed."""
        if self._counted_at == self.version:
            return
        self._counted_at = self.version
        states = () if self.image is None else self.image.partitions()
        self._hosts = {broker for state in states for broker in state.replicas}
        led = Counter(state.leader for state in states)
        self._led = [Led(broker, count) for broker, count in sorted(led.items()) if broker >= 0]
        self._counts = "" if self.image is None else self._counter.count(self.image).pack()
        self._counts_name = name_of(self._counts) if self._counts else ""

    def _pack_changes(self) -> None:
        """Pack what admins did again if more of it is known."""
        admin = None if self.image is None else self.image.admin
        known = (admin, -1 if admin is None else admin.version)
        if known != self._admin:
            self._admin = known
            rows = [] if admin is None else [MetadataChange(**asdict(each)) for each in admin.changes]
            self._changes_packed = "" if admin is None else MetadataChanges(rows, admin.from_offset, admin.from_ms).pack()
            self._changes_name = name_of(self._changes_packed) if admin else ""

    def is_of_zookeeper(self) -> bool:
        """Whether its log dirs are of a broker whose cluster's metadata is in ZooKeeper."""
        of_zookeeper = [log_dir.zookeeper for log_dir in self._log_dirs]
        return bool(of_zookeeper) and all(of_zookeeper)

    def _appended_ms(self) -> int:
        interval = None if self.image is None else self.image.idle_interval_ms
        try:
            return -1 if interval is None or interval > IDLE_MS else self._log.modified_ms()
        except OSError:  # the next read of the log reports why
            return -1

    def _quorum_state(self) -> QuorumState | None:
        try:
            return read_quorum_state(self._metadata_dirs)
        except (OSError, FormatError):  # the read of the metadata log itself reports why
            return None


class PartitionCounter:
    """Counts the partitions of one image. A topic is counted again only if it has changed.

    Counts how many partitions of each topic are offline, under min ISR and under-replicated, from a copy of the metadata log. All
    partitions of the cluster are counted, on whichever host their brokers are. If a host dies, its agent dies with it, but the copy
    of every other broker contains the partitions that it led.

    Args:
        min_isr: the min.insync.replicas of the topic or of a dynamic configuration, 0 if neither sets it.
    """

    def __init__(self, min_isr: Callable[[str], int]) -> None:
        self._min_isr = min_isr
        self._image: ClusterImage | None = None
        self._topics: dict[str, _TopicCount] = {}  # by id

    def count(self, image: ClusterImage) -> PartitionCounts:
        """Count all topics of the image now, sorted by name."""
        if image is not self._image:
            self._image = image
            self._topics.clear()
        before, self._topics = self._topics, {}
        capped = frozenset(broker.broker_id for broker in image.brokers() if broker.metadata_version >= KAFKA_3_7)
        for topic in sorted(image.topics(), key=lambda topic: topic.name):
            min_isr = self._min_isr(topic.name)
            made_of = image.topic_changes(topic.topic_id), min_isr, capped
            counted = before.get(topic.topic_id)
            if counted is None or counted.made_of != made_of:
                counted = _count(topic, image.partitions_of(topic.topic_id), min_isr, capped, made_of)
            self._topics[topic.topic_id] = counted
        found = self._topics.values()
        affected = sorted(
            chain.from_iterable(each.affected for each in found), key=lambda each: _WORST_FIRST[PartitionProblem(each.problem)]
        )
        return PartitionCounts(
            [each.counts for each in found],
            affected,
            list(islice(chain.from_iterable(each.recovering for each in found), MOST_RECOVERING)),
            list(chain.from_iterable(each.reassignments for each in found)),
        )


@dataclass(frozen=True, slots=True)
class _TopicCount:
    """The counts of a topic, and the values that they were made of. While these values stay the same, so do the counts."""

    made_of: tuple[object, ...]
    counts: TopicCounts
    affected: list[AffectedPartition]
    recovering: list[PartitionName]
    reassignments: list[Reassignment]


def _count(
    topic: Topic, partitions: Mapping[int, PartitionState], min_isr: int, capped: frozenset[int], made_of: tuple[object, ...]
) -> _TopicCount:
    states = sorted(partitions.items())
    found = {
        PartitionProblem.OFFLINE: [each for each in states if each[1].leader < 0],
        PartitionProblem.UNDER_MIN_ISR: [each for each in states if under_min_isr(each[1], min_isr, capped)],
        PartitionProblem.UNDER_REPLICATED: sorted((each for each in states if each[1].under_replicated), key=lambda each: len(each[1].isr)),
    }
    return _TopicCount(
        made_of,
        TopicCounts(
            topic=topic.name,
            topic_id=topic.topic_id,
            partitions=len(states),
            in_sync={}
            if min_isr
            else dict(Counter(f"{len(state.isr)}/{len(state.replicas) if _is_capped(state, capped) else ''}" for _, state in states)),
            **{str(problem): len(some) for problem, some in found.items()},
        ),
        list(_affected(topic.name, found)),
        [PartitionName(topic.name, number) for number, state in states if state.recovering],
        [_reassignment(topic.name, number, state) for number, state in states if state.adding_replicas or state.removing_replicas],
    )


class PartitionProblem(StrEnum):
    """The problem of a partition, the worst first."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under_min_isr"
    UNDER_REPLICATED = "under_replicated"


def under_min_isr(state: PartitionState, min_isr: int, capped: frozenset[int]) -> bool:
    """Whether fewer replicas are in sync than min.insync.replicas requires (`Partition.isUnderMinIsr`).

    Args:
        capped: brokers of Kafka 3.7 and later, which require no more than there are replicas. Without a leader, any such broker is enough.
    """
    return len(state.isr) < (min(min_isr, len(state.replicas)) if _is_capped(state, capped) else min_isr)


def _is_capped(state: PartitionState, capped: frozenset[int]) -> bool:
    return bool(capped) if state.leader < 0 else state.leader in capped


def _affected(topic: str, partitions: dict[PartitionProblem, list[tuple[int, PartitionState]]]) -> Iterable[AffectedPartition]:
    """All partitions of a topic with a problem, each with its worst one; those of which the same is true in one message."""
    named: set[int] = set()
    for problem, some in partitions.items():
        alike: dict[tuple[int, tuple[tuple[int, ...], ...]], list[int]] = {}
        for partition, state in some:
            if partition not in named:
                replicas = tuple(tuple(sorted(each)) for each in (state.isr, state.out_of_sync, state.electable))
                alike.setdefault((state.leader, replicas), []).append(partition)
        for (leader, (in_sync, out_of_sync, electable)), (first, *also) in alike.items():
            named.update((first, *also))
            yield AffectedPartition(
                topic=topic,
                partition=first,
                problem=str(problem),
                leader=leader,
                in_sync=[*in_sync],
                out_of_sync=[*out_of_sync],
                electable=[*electable],
                also=also,
            )


def _reassignment(topic: str, partition: int, state: PartitionState) -> Reassignment:
    adding, removing = sorted(state.adding_replicas), sorted(state.removing_replicas)
    return Reassignment(topic=topic, partition=partition, leader=state.leader, adding=adding, removing=removing)


_WORST_FIRST = {problem: rank for rank, problem in enumerate(PartitionProblem)}


def _min_isr(configs: Configs) -> int:
    """min.insync.replicas from the metadata log for a topic, 0 where it sets none: the job reads ``server.properties``."""
    found = (int(setting.value) for setting in configs.settings if setting.name == "min.insync.replicas")
    return next(found, 0)


def _registered(state: BrokerState, replicas: bool) -> Registered:
    phase = "" if state.phase is None else str(state.phase)
    return Registered(state.broker_id, state.fenced, state.broker_epoch, phase, state.since_ms, replicas, server_of(state))


def name_of(packed: str) -> str:
    """The name of something packed: a hash of its content."""
    return hashlib.sha256(packed.encode()).hexdigest()[:16]


def _topic_id(image: ClusterImage | None, key: LogKey) -> str | None:
    if image is None:
        return None
    if key.topic_id:
        return key.topic_id if image.topic_name(key.topic_id) is not None else None
    return image.topic_id(key.topic)


def _is_own(key: LogKey, leader: int) -> Leads:
    return Leads.YES if leader == key.broker else Leads.NO


def _is_hosted(image: ClusterImage, log_dir: LogDir, topic: str, partition: int) -> bool:
    state = image.partition(image.topic_id(topic) or "", partition)
    if state is None or log_dir.broker not in state.replicas:
        return False
    assigned, broker = state.directory(log_dir.broker), image.broker(log_dir.broker)
    return assigned == log_dir.directory_id or broker is None or assigned not in broker.log_dirs
