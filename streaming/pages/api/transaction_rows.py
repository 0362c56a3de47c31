"""The listing of open transactions: what each of them holds back, its verdict, and the command that aborts it or asks its coordinator."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from streaming.broker.protocol.listing_json import TransactionPage, TransactionRow
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.cases import transaction_verdict
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.kinds import ORDER
from streaming.cluster.verdicts.transaction_problems import aborts, committers, held_back_groups, remedy_for
from streaming.cluster.view.transaction_columns import Late
from streaming.pages.api.judged_look import with_verdicts
from streaming.pages.api.look import Look
from streaming.pages.api.paging import PageRequest, Sheet, columns_of_rows, cut, natural_order, worst_first
from streaming.pages.listings.transaction_list import TRANSACTIONS

_SAME = {each.name for each in fields(Late)} & {each.name for each in fields(TransactionRow)} - {"groups"}


def transaction_page(look: Look, circumstances: Circumstances, request: PageRequest) -> TransactionPage:
    """A page of open transactions: those that are open for longer than ``late_after``."""
    rows = transaction_rows(look, circumstances, look.view.logs.late)
    some = cut(_sheet(rows), request)
    listed = [rows[item] for item in some.items]
    omitted, every = look.view.logs.late_omitted, look.view.logs.open
    young = int(np.count_nonzero(every.young))
    after_ms = every.late_after_ms
    aborting = [
        f"{kinds.CLIENT_ABORTS.about(client=each.transactional_id)}: {aborts(each, look.now_ms)}" for each in circumstances.aborting
    ]
    return some.page(TransactionPage, look.now_ms, listed, omitted=omitted, late_after_ms=after_ms, young=young, aborting=aborting)


def transaction_rows(look: Look, circumstances: Circumstances, some: Sequence[Late]) -> list[TransactionRow]:
    """Some of the rows."""
    rows, waiting = [], held_back_groups(circumstances.groups)
    for late in some:
        remedy, holds = remedy_for(circumstances, late, waiting), circumstances.view.logs.held_by(late)
        partition = look.topics[late.log], int(look.partitions[late.log])
        rows.append(
            TransactionRow(
                broker=int(look.brokers[late.log]),
                topic=partition[0],
                partition=partition[1],
                **{name: getattr(late, name) for name in _SAME},
                holds_offsets=holds,
                held_groups=None if circumstances.groups is None else waiting.readers(partition) if holds >= 0 else [],
                groups=committers(late, partition, waiting),
                command=remedy.command.line,
                no_command=remedy.command.reason,
                advice=remedy.advice,
            )
        )
    return with_verdicts(rows, [transaction_verdict(circumstances, late) for late in some])


def _sheet(rows: Sequence[TransactionRow]) -> Sheet:
    columns = columns_of_rows(TRANSACTIONS, rows)
    natural = natural_order([row.topic for row in rows], columns["partition"], columns["broker"], columns["first_offset"])
    place = np.fromiter((ORDER.get(row.kind, -1) for row in rows), np.int64, len(rows))
    columns["verdict"] = worst_first(place, natural, columns["start_ms"])
    return Sheet(
        columns=columns,
        texts=[" ".join((f"{row.topic}-{row.partition}", row.transactional_id, str(row.producer_id), row.verdict)) for row in rows],
        natural=natural,
        topics=[row.topic for row in rows],
    )
