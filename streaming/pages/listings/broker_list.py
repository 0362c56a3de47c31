"""The list of brokers."""

from dataclasses import replace

from streaming.broker.protocol.broker_json import BrokerRow
from streaming.common.formatting import NONE, format_name
from streaming.pages.listings.list_cells import Cell, Times, Unit, words
from streaming.pages.listings.listing import ASCENDING, DESCENDING, SHOWN_JUDGED, Field, Listing


def _phase(row: BrokerRow, times: Times) -> Cell:
    return Cell(text=words(row.phase), note="" if row.phase_ms < 0 else times.of(row.phase_ms), at_ms=row.phase_ms)


def _agent(row: BrokerRow, _: Times) -> Cell:
    return Cell(text=format_name(row.agent), note="" if row.agent_up else "does not answer") if row.agent else Cell(text=NONE)


BROKERS = Listing(
    name="brokers",
    noun="broker",
    row=BrokerRow,
    default="kind",
    fields=(
        Field(name="broker", unit=Unit.ID, meaning="its id", heading="Broker", rank=1, sort=ASCENDING, key="B"),
        Field(
            name="phase",
            unit=Unit.WORD,
            meaning="`running`, `starting`, `stopping` (or stopped) or `down`, by the metadata log and its process",
            heading="Phase",
            rank=3,
            sort=ASCENDING,
            key="P",
            cell=_phase,
        ),
        Field(name="phase_ms", unit=Unit.MOMENT, meaning="since when, at the latest"),
        Field(
            name="agent",
            unit=Unit.NAME,
            meaning="that watches its log dirs",
            heading="Agent",
            rank=7,
            sort=ASCENDING,
            key="A",
            least=12,
            cell=_agent,
        ),
        Field(name="agent_up", unit=Unit.FLAG, meaning="whether it answers"),
        Field(
            name="behind_ms",
            unit=Unit.DURATION,
            meaning="as in `AgentState`",
            heading="Behind",
            rank=10,
            sort=DESCENDING,
            key="D",
        ),
        Field(
            name="leaders",
            unit=Unit.COUNT,
            meaning="partitions that it leads, of the replicas on it that are watched",
            heading="Leaders",
            rank=4,
            sort=DESCENDING,
            key="L",
        ),
        Field(
            name="replicas",
            unit=Unit.COUNT,
            meaning="those that are watched",
            heading="Replicas",
            rank=6,
            sort=DESCENDING,
            key="R",
        ),
        Field(
            name="out_of_sync",
            unit=Unit.COUNT,
            meaning="of these, the ones that are not in sync; `null` where that is not known of one",
            heading="Out of sync",
            rank=5,
            sort=DESCENDING,
            key="O",
        ),
        Field(
            name="bytes_rate",
            unit=Unit.BYTES_RATE,
            meaning="appended to the partitions that it leads; `null` where it is not known of one",
            heading="Bytes/s",
            rank=8,
            sort=DESCENDING,
            key="Y",
        ),
        Field(name="size_bytes", unit=Unit.BYTES, meaning="of its replicas", heading="Size", rank=9, sort=DESCENDING, key="S"),
        Field(
            name="log_dirs",
            unit=Unit.COUNT,
            meaning="those that its agent reports",
            heading="Log dirs",
            rank=11,
            sort=DESCENDING,
            key="G",
        ),
        replace(SHOWN_JUDGED[0], meaning="the worst problem of the broker, its log dirs or its agent: a `kind` of `Problem`"),
        *SHOWN_JUDGED[1:],
    ),
)
