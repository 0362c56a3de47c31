"""The types of numpy's arrays that columns are made of: one name for each, in all rooms."""

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]
