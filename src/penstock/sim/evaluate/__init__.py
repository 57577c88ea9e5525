"""Evaluators of decisions, on top of the engine."""
