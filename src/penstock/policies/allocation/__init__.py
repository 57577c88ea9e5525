"""How many resources each job gets: one file per policy."""
