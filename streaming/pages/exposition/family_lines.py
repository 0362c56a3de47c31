"""The lines of a family in the text formats of Prometheus, which are the same in both.

Arrow's compute functions format a million series one column at a time, and other threads can use the interpreter meanwhile. Every line of
a family is joined into one array of texts. The data of this array, one text after the other, is a part of the page.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.view.family import TEXT, Family, Samples, text
from streaming.common.arrays import Longs
from streaming.common.definitions.metric import Metric, Type

_UNIT_DIGITS = {"seconds": 3, "ratio": 6}
"""Times are counted in milliseconds, ratios in millionths."""


def lines_of(family: Family) -> pa.LargeStringArray:
    """The lines of a family, those of one subject together, as OpenMetrics requires."""
    parts: list[pa.Array | pa.Scalar] = []
    end_of_line = ""
    for samples in family.samples:
        more = f",{samples.label}}} " if samples.label else "} "
        parts += (
            text(f"{end_of_line}{family.metric.name}{samples.suffix}{{"),
            family.labels,
            text(more),
            _numbers(samples.values, _digits(family.metric, samples)),
        )
        end_of_line = "\n"
    return pc.binary_join_element_wise(*parts, text("\n"), text(""))


def text_of(lines: pa.LargeStringArray) -> memoryview:
    """Lines below each other."""
    _, ends, data = lines.buffers()
    first, last = np.frombuffer(ends, np.int64)[[lines.offset, lines.offset + len(lines)]].tolist()
    return memoryview(data)[first:last]


def _digits(metric: Metric, samples: Samples) -> int:
    """How many digits of a whole number are after the decimal point."""
    if metric.type == Type.HISTOGRAM:
        return 3 if samples.thousandths else 0
    return _UNIT_DIGITS.get(metric.unit, 0)


def _numbers(values: Longs, digits: int) -> pa.LargeStringArray:
    """Whole numbers as texts, the last ``digits`` of each after the decimal point."""
    numbers = pa.array(values)
    if digits:
        wide = numbers.cast(pa.decimal128(22, 0))
        # The same integers, declared as thousandths or millionths. This is exact; a division would go through floats.
        numbers = pa.Array.from_buffers(pa.decimal128(22, digits), len(wide), wide.buffers())
    return numbers.cast(TEXT)
