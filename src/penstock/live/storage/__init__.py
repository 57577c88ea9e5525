"""Storage: the layouts and targets of file systems."""
