"""The simulated world: workloads, the native engine, its reference, and the metrics."""
