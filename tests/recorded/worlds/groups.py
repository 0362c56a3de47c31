"""A broker at rest with all topics and groups of `tests.broker.group_world`, and what was really consumed for each of them."""

from contextlib import ExitStack

from tests.broker import group_world
from tests.broker.dumped_logs import printed
from tests.broker.group_consuming import consumed, described, leading
from tests.broker.kafka import Kafka
from tests.broker.lab import lab
from tests.recorded.making import Making
from tests.recorded.worlds.resting import rest

GROUPS = 20
_BOTH_PROTOCOLS = {"group.coordinator.rebalance.protocols": "classic,consumer"}  # before 4.0 only who asks for it has the second one


def make(making: Making) -> None:
    """Releases before 4.0 have no share groups."""
    older = making.version.startswith("3.")
    settings = {**group_world.SETTINGS, **(_BOTH_PROTOCOLS if older else {})}
    kafka = Kafka(making.directory / "kafka", settings=settings, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        group_world.create(kafka, older=older)
        kafka.stop()
        group_world.put_old_segments(kafka.log_dirs)
        kafka.start()
        clients = stack.enter_context(lab(kafka.bootstrap, making.directory / "lab.log"))
        filling = group_world.Filling(kafka, clients, seed=1)
        filling.fill()
        directories = leading(kafka, group_world.TOPICS)
        group_world.commit_everywhere(filling, clients, directories, groups=GROUPS)
        group_world.commit_in_transactions(clients)
        if not older:
            group_world.share(clients)
        rows = [(left.commit, left.ends, left.committed, left.uncommitted) for left in consumed(clients)]
        making.answer("left", rows, by="Kafka's Java consumer, for each group and partition by both isolations")
        making.answer("commits", clients.commits(), by="Kafka's Java admin client")
        making.answer("groups", described(kafka), by="kafka-consumer-groups --describe --all-groups --offsets")
        making.answer("logs", printed(directories), by="kafka-dump-log --deep-iteration")
        rest(kafka, {place: ends.high_watermark for place, ends in clients.ends().items()})
        making.disk(kafka)
