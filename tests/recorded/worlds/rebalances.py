"""A broker with groups whose members came and went, one by one, were deployed and crashed; and what was done to each of them."""

from tests.broker import rebalancing
from tests.broker.kafka import Kafka
from tests.recorded.making import Making
from tests.recorded.worlds.resting import settle


def make(making: Making) -> None:
    """Releases before 4.0 have the classic protocol alone."""
    older = making.version.startswith("3.")
    kafka = Kafka(making.directory / "kafka", settings={} if older else rebalancing.SETTINGS, version=making.version)
    try:
        kafka.start()
        steps = rebalancing.play(kafka.bootstrap, older=older)
        making.answer("steps", {name: [(each.done, list(each.names), each.generation) for each in of] for name, of in steps.items()},
                      by="who did it, with the generation that librdkafka's consumers were in afterwards")  # fmt: skip
        logs = [path for log_dir in kafka.log_dirs for path in log_dir.glob("__consumer_offsets-*/*.log")]
        settle(kafka, lambda: [path.stat().st_mtime_ns for path in logs], "the coordinators' logs")
        making.disk(kafka)
    finally:
        kafka.kill()
