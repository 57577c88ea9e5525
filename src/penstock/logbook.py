"""The record of a live day."""
