"""patient: try every value three times, then keep the one with the highest mean.

A tuner from a file. Show it like any other:

    penstock policies examples/patient.py:Patient --kind tuning
"""

import numpy as np

from penstock.policies._support.bandit import Bandit


class Patient(Bandit):
    def __init__(self, *, tries: int = 3, seed: int = 0):
        super().__init__(seed=seed)
        self.tries = tries

    def score(self, arms):
        return np.where(arms.count < self.tries, np.inf, arms.mean)
