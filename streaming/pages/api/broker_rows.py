"""The listing of brokers: the phase of each, what it leads and holds, its agent, and the worst problem of its own."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.listing_json import BrokerPage, BrokerRow
from streaming.broker.protocol.status_json import Problem
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.kinds import ORDER
from streaming.cluster.view.broker_status import BrokerPhase
from streaming.cluster.view.observer import AgentStatus
from streaming.common.arrays import Flags, whole_sum
from streaming.kafka.formats.metadata_brokers import Phase
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.paging import PageRequest, Sheet, columns_of_rows, cut, worst_first
from streaming.pages.listings.partition_list import BROKERS


def broker_page(judged: JudgedLook, request: PageRequest) -> BrokerPage:
    """A page of brokers."""
    rows = broker_rows(judged)
    some = cut(_sheet(rows), request)
    return some.page(BrokerPage, judged.look.now_ms, [rows[item] for item in some.items])


def broker_rows(judged: JudgedLook) -> list[BrokerRow]:
    """All brokers, by their ids: those that the metadata log knows, that an agent watches, and that a replica is of."""
    circumstances, observed = judged.circumstances, judged.look.view.observed
    agents = {broker: each for each in sorted(circumstances.agents, key=lambda each: each.up) for broker in each.brokers}
    every = {*circumstances.phases, *agents, *np.unique(observed.columns["broker"]).tolist()}
    rates = judged.rates.bytes_rate(judged.look)
    data = np.fromiter((name != METADATA_TOPIC for name in observed.names), np.bool_, len(observed.names))  # its copies are in no ISR
    return [_row(judged, broker, agents.get(broker), rates, data) for broker in sorted(every)]


def _row(judged: JudgedLook, broker: int, agent: AgentStatus | None, rates: NDArray[np.float64], data: Flags) -> BrokerRow:
    circumstances, look = judged.circumstances, judged.look
    observed, logs = look.view.observed, look.view.logs
    here = np.flatnonzero(observed.columns["broker"] == broker)
    in_sync = observed.replica_offsets["in_sync"][here[data[here]]]
    known = (observed.replica_offsets["in_sync_replicas"][here[data[here]]] >= 0).all()
    led = np.flatnonzero((look.brokers == broker) & (logs["leader"] > 0))
    led_rates, phase = rates[led], _phase(circumstances, broker)
    _, lag_s = circumstances.lags.get(agent.name, (None, -1.0)) if agent is not None else (None, -1.0)
    worst = _worst(judged.problems, broker, "" if agent is None else agent.name)
    return BrokerRow(
        broker=broker,
        phase="" if phase is None else str(phase.phase),
        phase_ms=-1 if phase is None or phase.since is None else round(phase.since * 1000),
        agent="" if agent is None else agent.name,
        agent_up=agent is not None and agent.up,
        behind_ms=-1 if lag_s < 0 else round(lag_s * 1000),
        leaders=int(observed.roles.leads[here].sum()) if len(here) else -1,
        replicas=len(here) if len(here) else -1,
        out_of_sync=int((in_sync == 0).sum()) if len(here) and known else -1,
        bytes_rate=float(led_rates.sum()) if len(led) and (led_rates >= 0).all() else -1.0,
        size_bytes=whole_sum(observed.replica_offsets["size_bytes"][here]),
        log_dirs=-1 if agent is None else sum(each.broker == broker for each in agent.log_dirs),
        kind="" if worst is None else worst.kind,
        severity="" if worst is None else worst.severity,
        since_ms=-1 if worst is None else worst.since_ms,
    )


def _phase(circumstances: Circumstances, broker: int) -> BrokerPhase | None:
    """The phase, None if it is not known: of a broker that writes nothing, the last metadata log still has it that it runs."""
    phase = circumstances.phases.get(broker)
    is_silent = broker in circumstances.idle or broker in circumstances.not_writing
    return None if phase is not None and phase.phase is Phase.RUNNING and is_silent else phase


def _worst(problems: Sequence[Problem], broker: int, agent: str) -> Problem | None:
    """The worst problem that is about the broker itself; those of its partitions are theirs."""
    own = [each for each in problems if not each.topic and not each.group and (each.broker == broker or (agent and each.agent == agent))]
    return min(own, key=lambda each: ORDER.get(each.kind, len(ORDER)), default=None)


def _sheet(rows: Sequence[BrokerRow]) -> Sheet:
    natural = np.arange(len(rows))
    place = np.array([ORDER.get(row.kind, -1) for row in rows], np.int64)
    return Sheet(
        columns=columns_of_rows(BROKERS, rows) | {"kind": worst_first(place, natural, natural)},
        texts=[f"broker {row.broker} {row.agent} {row.phase}" for row in rows],
        natural=natural,
    )
