"""The I/O node: the process that forwards data, one per `penstock ionode`."""
