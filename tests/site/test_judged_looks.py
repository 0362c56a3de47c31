"""What a job finds out by more than one look."""

from streaming.cluster.verdicts.circumstances import thresholds_of
from streaming.cluster.verdicts.incidents import problems
from streaming.common.settings import Settings
from streaming.pages.api.log_rows import transaction_page
from streaming.pages.api.paging import PageRequest
from streaming.pages.site.judged_looks import JudgedLooks, Looks
from streaming.rules.transaction_verdicts import LEAST_SEEN
from tests.view.rows import new_observer, new_table, states
from tests.worlds.transactions import MS, NOW, coordinator

ENTRY = {"transactional_id": "abuser", "offset": 1, "state": "CompleteAbort", "producer_id": 7, "producer_epoch": 0, "start_ms": -1}


def test_a_client_that_aborts_all_its_transactions_is_on_the_page_and_among_transactions() -> None:
    now = [float(NOW)]
    table = new_table(coordinator(ENTRY | {"last_update_ms": MS}), coordinator_partitions=1)
    judged = JudgedLooks(
        table, new_observer(), Looks(table, lambda: now[0]), None, lambda _: None, thresholds_of(Settings()), redacted=False
    )
    for number in range(LEAST_SEEN):
        assert not judged.look().circumstances.aborting
        now[0] += 60
        table.apply(states(coordinator(ENTRY | {"producer_epoch": 120 * number, "last_update_ms": MS + 60_000 * number + 59_000})))
    look = judged.look()
    (found,) = (each for each in problems(look.circumstances) if each.kind == "client_aborts")
    assert found.what == (
        "Client abuser aborts most of its transactions: 100 % of a sample were aborted: 10 of 10 in the last 9m; it ends about 2.0 a second"
    )
    assert (found.severity, found.runbook) == ("warning", "")
    assert transaction_page(look.look, look.circumstances, PageRequest(sort="broker", order="asc")).aborting == [found.what]
