"""The controller: one process per site, which decides."""
