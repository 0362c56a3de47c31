"""Rows of agents, brokers, log dirs and observers, as agents report them."""

from typing import Any

from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus
from streaming.cluster.view.observer import AgentStatus, Observer
from tests.exposition.reading import named
from tests.view.rows import new_observer, new_table


def log_dir(path: str = "/d0", broker: int = 1, **values: Any) -> LogDirStatus:
    kinds = {"deleted": 1, "delete": 2, "stray": 3, "future": 4, "index": 5, "metadata": 6}
    given = {"up": True, "registered": True, "checkpoint_ms": 1_700_000_000_500, "free": 10, "capacity": 90, **kinds}
    return LogDirStatus(broker=broker, log_dir=path, **{**given, **values})


def broker(number: int = 1, **values: Any) -> BrokerStatus:
    given: dict[str, Any] = {
        "readable": True,
        "metadata_offset": 10,
        "registered": [],
        "controller": 3,
        "led": [],
        "transaction_partitions": 50,
    }
    return BrokerStatus(broker=number, **{**given, **values})


def agent(name: str, *statuses: BrokerStatus, log_dirs: tuple[LogDirStatus, ...] = (), up: bool = True) -> AgentStatus:
    return AgentStatus(name=name, up=up, brokers=tuple(each.broker for each in statuses), log_dirs=log_dirs, broker_statuses=statuses)


def observer(*agents: AgentStatus) -> Observer:
    made = new_observer()
    made.know(agents)
    return made


def reported(made: Observer, name: str, *names: str) -> dict[tuple[str, ...], float]:
    return {tuple(dict(labels)[each] for each in names): value for labels, value in named(new_table(), name, made).items()}
