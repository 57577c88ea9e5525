"""Arrays of numbers, as models of writes have them."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
