"""What can be learnt from observing jobs."""
