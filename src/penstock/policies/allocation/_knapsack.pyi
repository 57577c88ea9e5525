import numpy as np
from numpy.typing import NDArray

def solve(
    offsets: NDArray[np.int64],
    weights: NDArray[np.int32],
    values: NDArray[np.float64],
    capacity: int,
    chosen: NDArray[np.int32],
) -> bool: ...
