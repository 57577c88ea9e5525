"""Which resources each job gets: one file per policy."""
