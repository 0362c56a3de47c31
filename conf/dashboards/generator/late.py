"""The list of late transactions, which several dashboards show."""

from grafana_foundation_sdk.builders import table

from conf.dashboards.generator.frame import ROW_TO_PARTITION, ROWS
from conf.dashboards.generator.parts import Column, listing

_SUBJECT = "broker, topic, partition, producer_id, first_offset"
_INFO = "producer_epoch, transactional_id, coordinator_state, verdict, stuck, groups"

COLUMNS = (
    Column(of="Value", head="open for", width=100),
    Column(of="verdict", head="verdict", width=110),
    Column(of="transactional_id", head="transactional.id"),
    Column(of="topic", head="topic", link=ROW_TO_PARTITION),
    Column(of="partition", head="partition", link=ROW_TO_PARTITION, width=90),
    Column(of="first_offset", head="first offset", width=130),
    Column(of="producer_id", head="producer id", width=110),
    Column(of="producer_epoch", head="epoch", width=80),
    Column(of="coordinator_state", head="coordinator state", width=150),
    Column(of="broker", head="broker", width=80),
    Column(of="stuck", head="stuck", width=70),
    Column(of="groups", head="groups that wait"),
)


def late_transactions(selector: str, *, rows: int = ROWS, height: int = 9) -> table.Panel:
    """A row for each late transaction, the oldest first."""
    age = f"time() - max by ({_SUBJECT}) (segtail_late_transaction_start_timestamp_seconds{{{selector}}})"
    info = f"max by ({_SUBJECT}, {_INFO}) (segtail_late_transaction_info{{{selector}}})"
    return listing(
        "Late transactions, the oldest first",
        f"topk({rows}, ({age}) * on ({_SUBJECT}) group_left ({_INFO}) {info})",
        COLUMNS,
        unit="s",
        told="Transactions that are open for longer than late_after. Readers of committed records wait behind the first offset. Only "
        "one with the verdict hanging is to be aborted by hand, with kafka-transactions.sh abort --topic, --partition and --start-offset "
        "(the first offset): "
        "overdue and completing are the coordinator's to end, two_phase that of its external coordinator; unclaimed is not hanging yet; "
        "unknown means that not all of __transaction_state, or not all of the partition, was read to its end.",
        steps=((900, "orange"), (3600, "red")),
        runbook="TransactionHanging",
        height=height,
    )
