"""The events of a day, by their names in docs/alerts.md; a step does something and then says which row it was."""

from collections.abc import Iterator, Mapping

from tests.broker.clients import delete_topic, producer, send
from tests.broker.kafka import CONTROLLER_ID
from tests.operations import actions
from tests.operations.cluster import HOSTS, NEWCOMER, Cluster
from tests.operations.day import Event, Step
from tests.operations.traffic import AUDIT, PAYMENTS
from tests.worlds.services import AGENT, ALL

LONG = 18
"""Minutes after which the slowest of the alerts about replicas fires."""

MINUTE_SECONDS = 60
CLICKS = "clicks"
"""Two replicas, one of which is enough."""


def clean_day(_cluster: Cluster) -> Iterator[Step]:
    yield Step(name="Producers write, transactions commit, segments roll and are deleted", minutes=10)


def agent_restarts(cluster: Cluster) -> Iterator[Step]:
    cluster.agents[2].kill(AGENT)
    cluster.agents[2].start()
    yield Step(name="An agent is killed and starts again")


def minute_of_lag(cluster: Cluster) -> Iterator[Step]:
    with cluster.stopped(cluster.agents[1]):
        cluster.idle(MINUTE_SECONDS)
    yield Step(name="An agent stands still for a minute")
    with cluster.stopped(cluster.job):
        cluster.idle(MINUTE_SECONDS)
    yield Step(name="The job stands still for a minute")


def rolling_restart(cluster: Cluster) -> Iterator[Step]:
    for host in HOSTS:
        cluster.kafka.stop(host)
        cluster.kafka.start(host)
        actions.await_replicated(cluster.kafka)
    yield Step(name="Each broker is stopped and started, the next one when all replicas are in sync", minutes=15)


def host_dies(cluster: Cluster) -> Iterator[Step]:
    cluster.kill_host(3)
    yield Step(name="The host dies, its broker and its agent with it", minutes=LONG, hosts=(3,))
    cluster.start_host(3)
    yield Step(name="The host returns", minutes=10)


def hanging(cluster: Cluster) -> Iterator[Step]:
    first_offset = actions.hang(cluster.kafka, PAYMENTS, 1, 3)
    yield Step(name="A transaction is left open that no coordinator knows", minutes=21)
    actions.abort(cluster.kafka, PAYMENTS, 1, first_offset)
    yield Step(name="It is aborted by the command that the page gives")


def restarts_in_a_page(cluster: Cluster) -> Iterator[Step]:
    first_offset = actions.hang(cluster.kafka, PAYMENTS, 2, 3)
    yield Step(name="A transaction is left open that no coordinator knows", minutes=21)
    cluster.restart_job()
    yield Step(name="The job is killed and starts again", minutes=12)
    cluster.agents[2].kill(AGENT)
    cluster.agents[2].start()
    yield Step(name="An agent is killed and starts again")
    actions.abort(cluster.kafka, PAYMENTS, 2, first_offset)
    yield Step(name="The transaction is aborted")


def broker_joins(cluster: Cluster) -> Iterator[Step]:
    cluster.add_host(NEWCOMER)
    yield Step(name="An empty broker joins; the job is started again with its agent", minutes=15)


def broker_drained(cluster: Cluster) -> Iterator[Step]:
    moves = actions.replaced(cluster.kafka, HOSTS[-1], NEWCOMER)
    actions.reassign(cluster.kafka, moves, cluster.scratch)
    actions.await_reassigned(cluster.kafka, moves, cluster.scratch)
    yield Step(name="All its replicas are moved to the new broker; it runs on, empty", minutes=15)


def reassignment(cluster: Cluster) -> Iterator[Step]:
    moves = actions.replaced(cluster.kafka, NEWCOMER, HOSTS[-1])
    actions.reassign(cluster.kafka, moves, cluster.scratch, bytes_a_second=10_000)
    yield Step(name="Replicas are moved slowly, and clients write meanwhile", minutes=LONG)
    actions.await_reassigned(cluster.kafka, moves, cluster.scratch)
    yield Step(name="They have arrived")


def broker_leaves(cluster: Cluster) -> Iterator[Step]:
    cluster.kafka.stop(NEWCOMER)
    actions.unregister(cluster.kafka, NEWCOMER)
    cluster.remove_host(NEWCOMER)
    yield Step(name="An empty broker is stopped and unregistered; the job is started again without its agent", minutes=15)


def log_dir_fails(cluster: Cluster) -> Iterator[Step]:
    broker = cluster.kafka.broker(3)
    failed = broker.log_dirs[1]
    actions.freeze_disk(failed, frozen=True)
    yield Step(name="The file system of a log dir goes read-only", minutes=LONG, hosts=(3,))
    cluster.kafka.stop(broker.node_id)
    actions.replace_disk(failed)
    cluster.kafka.format(broker.node_id)
    cluster.kafka.start(broker.node_id)
    yield Step(name="The broker is stopped, a new disk formatted in its place, and the broker started", minutes=10)


def min_isr_lost(cluster: Cluster) -> Iterator[Step]:
    with cluster.traffic.without_transactions():
        for host in HOSTS[1:]:
            cluster.kill_host(host)
        yield Step(name="Two of three hosts die", minutes=LONG, hosts=HOSTS[1:])
        for host in HOSTS[1:]:
            cluster.start_host(host)
        yield Step(name="Both return", minutes=10)


def unclean_election(cluster: Cluster) -> Iterator[Step]:
    kafka = cluster.kafka
    actions.create_placed(kafka, CLICKS, (2, 3), {"min.insync.replicas": "1"})
    send(producer(kafka.bootstrap), CLICKS, 0, 2, 10)
    with cluster.traffic.without_transactions():
        cluster.kill_host(3)
        actions.await_partitions(kafka, "one is in sync", lambda state: list(state.isrs) == [2], CLICKS)
        send(producer(kafka.bootstrap), CLICKS, 0, 3, 10)
        cluster.kill_host(2)
        cluster.start_host(3)
        yield Step(name="The host of the last in-sync replica dies; a replica that lacks records is up", minutes=LONG, hosts=(2, 3))
        actions.elect_uncleanly(kafka, CLICKS, 0)
        send(producer(kafka.bootstrap), CLICKS, 0, 1, 10)
        yield Step(name="That replica is elected all the same")
        cluster.start_host(2)
        actions.await_replicated(kafka)
        yield Step(name="The old leader's host returns, and its log is cut back", minutes=10, hosts=(2, 3))
    delete_topic(kafka.bootstrap, CLICKS)
    yield Step(name="The topic is deleted")


def quorum_lost(cluster: Cluster) -> Iterator[Step]:
    cluster.kafka.kill(CONTROLLER_ID)
    yield Step(name="No controller is left", minutes=12)
    cluster.kafka.start(CONTROLLER_ID)
    yield Step(name="A controller is elected", minutes=10)


def quorum_lost_with_its_hosts(cluster: Cluster) -> Iterator[Step]:
    with cluster.traffic.without_transactions():
        for host in HOSTS[1:]:
            cluster.kill_host(host)
        yield Step(name="Two of three hosts with combined nodes die", minutes=LONG, hosts=HOSTS[1:])
        for host in HOSTS[1:]:
            cluster.agents[host].start()
        cluster.kafka.start(*HOSTS[1:])
        yield Step(name="Both return", minutes=10)


def retention_lowered(cluster: Cluster) -> Iterator[Step]:
    actions.set_config(cluster.kafka, AUDIT, "retention.ms", "1000")
    yield Step(name="retention.ms of a topic is lowered: most of what is there is past it", minutes=15)
    actions.set_config(cluster.kafka, AUDIT, "retention.ms", None)
    yield Step(name="It is set back")


def scrapes_fail(cluster: Cluster) -> Iterator[Step]:
    cluster.scrapes.every_second_fails = True
    cluster.agents[2].kill(AGENT)
    yield Step(name="An agent is killed while every second scrape fails", minutes=LONG, hosts=(2,))
    cluster.scrapes.every_second_fails = False
    yield Step(name="All scrapes succeed again", minutes=15)
    cluster.agents[2].start()
    yield Step(name="The agent starts again", minutes=10)


def twins(cluster: Cluster) -> Iterator[Step]:
    twin = cluster.add_twin()
    yield Step(name="A second job watches the same cluster", minutes=12)
    twin.kill(ALL)
    yield Step(name="It dies", minutes=12)
    cluster.remove_twin()
    yield Step(name="It is no target any more", minutes=12)


def segtail_deployed_again_and_again(cluster: Cluster) -> Iterator[Step]:
    for _ in range(3):
        cluster.restart_job()
        cluster.idle(4 * MINUTE_SECONDS)
    yield Step(name="A version of the job, one to mend it and one to mend that start within a quarter of an hour", minutes=15)


EVENTS: Mapping[str, Event] = {
    "A clean day": clean_day,
    "An agent restarts": agent_restarts,
    "A minute of lag": minute_of_lag,
    "Retention is lowered": retention_lowered,
    "A rolling restart": rolling_restart,
    "A hanging transaction": hanging,
    "Restarts while a page stands": restarts_in_a_page,
    "A host dies and returns": host_dies,
    "Min ISR is lost": min_isr_lost,
    "An unclean election": unclean_election,
    "A log dir fails": log_dir_fails,
    "The quorum is lost": quorum_lost,
    "An empty broker joins": broker_joins,
    "A broker is drained": broker_drained,
    "Replicas are moved": reassignment,
    "A broker leaves": broker_leaves,
    "Scrapes fail": scrapes_fail,
    "Twins": twins,
    "Segtail is deployed three times": segtail_deployed_again_and_again,
}

COMBINED: Mapping[str, Event] = {"The quorum is lost with its hosts": quorum_lost_with_its_hosts}
"""Those of a cluster whose three brokers are controllers as well."""

SHORT = ("A hanging transaction", "A host dies and returns")
"""Those that the test suite lets happen, at the same time; ``make soak ONLY=operations`` takes all, one after the other.

In none of them the job starts again: that takes so long that a large factor would make minutes of it. A clean day is what is before, and
what each of them would be but for its own alerts.
"""
