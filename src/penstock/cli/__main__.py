"""The `penstock` program, and `python -m penstock.cli`."""

import sys

from penstock.cli import main


def run() -> None:
    """Run the command line and leave with its exit status."""
    sys.exit(main())


if __name__ == "__main__":
    run()
