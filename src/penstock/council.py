"""The Council: which values the I/O nodes' parameters take, from what the nodes saw."""
