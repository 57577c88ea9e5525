"""Which of a parameter's values suits a context: one policy a file."""
