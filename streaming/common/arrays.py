"""The types of numpy's arrays that columns are made of, one name for each, in all rooms; and a sum that is whole or not known."""

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def whole_sum(values: Longs) -> int:
    """The sum of values of which each is known, not below zero; -1 where one is not known, or there is none."""
    return int(values.sum()) if len(values) and (values >= 0).all() else -1
