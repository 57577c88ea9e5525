import numpy as np
from numpy.typing import NDArray

def solve(
    offsets: NDArray[np.int64],
    weights: NDArray[np.int32],
    values: NDArray[np.float64],
    capacity: int,
    chosen: NDArray[np.int32],
) -> bool: ...
def totals(
    offsets: NDArray[np.int64],
    weights: NDArray[np.int32],
    values: NDArray[np.float64],
    members: NDArray[np.int64],
    sets: int,
    totals: NDArray[np.float64],
) -> None: ...
