"""What decisions are worth: evaluators on top of the engine."""
