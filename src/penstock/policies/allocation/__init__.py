"""How many resources each job gets: one policy a file."""
