"""Who is asked for groups that wait, and what of the answers is shown."""

import numpy as np

from streaming.cluster.view.transaction_columns import MOST_ASKED, HangingTransaction, WaitingGroups
from streaming.common.rows import TRANSACTIONS
from tests.exposition.reading import named
from tests.view.reported import Facts
from tests.view.rows import log, new_table
from tests.worlds.transactions import NOW, transaction

INFO = "segtail_late_transaction_info"


def subject(number: int) -> HangingTransaction:
    return HangingTransaction(1, "__consumer_offsets", number, "", 7, 40)


def test_what_is_known_is_not_asked_again_and_what_is_over_is_forgotten() -> None:
    waiting = WaitingGroups()
    assert (waiting.of([subject(1), subject(2)]), waiting.asked) == ({}, (subject(1), subject(2)))
    waiting.update({subject(1): ("billing",), subject(9): ("late",)})
    assert waiting.asked == (subject(2),)
    assert waiting.of([subject(1), subject(2)]) == {subject(1): ("billing",)}
    assert waiting.of([subject(2)]) == {}
    assert waiting.of([subject(1)]) == {}
    waiting.update({subject(1): ()})
    assert (waiting.of([subject(1)]), waiting.asked) == ({subject(1): ()}, ())


def test_only_so_many_are_asked_for_at_once() -> None:
    waiting = WaitingGroups()
    waiting.of(map(subject, range(99)))
    assert len(waiting.asked) == MOST_ASKED


def test_the_page_asks_for_what_hangs_in_the_offsets_alone_and_names_the_groups() -> None:
    alone = Facts(replicas=(1,), isr=(1,)).encode()
    opened = np.array([transaction(7, 40, age=1000)], TRANSACTIONS).tobytes()
    row = {"transactional": True, "transactions": opened, "leader": 1, "leader_epoch": 0, "log_end_offset": 100, "facts": alone}
    table = new_table(log("__consumer_offsets", 3, **row), log("orders", 0, **row), coordinator_partitions=0)
    named(table, INFO, now=NOW - 101)
    assert table.waiting.asked == ()  # it does not hang yet
    named(table, INFO, now=NOW)
    assert table.waiting.asked == (subject(3),)
    table.waiting.update({subject(3): ("billing", "stock")})
    groups = {dict(labels)["topic"]: dict(labels)["groups"] for labels in named(table, INFO, now=NOW + 62)}
    assert groups == {"__consumer_offsets": "billing, stock", "orders": ""}
