"""Which resources each job gets: one policy a file."""
