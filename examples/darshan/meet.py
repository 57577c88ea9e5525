"""Makes the runs of a workload meet: copies of each start at random times within a span.

    python3 meet.py jobs.json --copies 8 --within 3600 --draws 5

Writes meet-1.json, meet-2.json, ... beside the workload, and prints their names. The same command
draws the same times.
"""

import argparse
import json
import random
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", type=Path)
    parser.add_argument("--copies", type=int, default=8, help="of each run")
    parser.add_argument("--within", type=float, default=3600.0, help="seconds")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    runs = json.loads(options.workload.read_text())["jobs"]
    for draw in range(1, options.draws + 1):
        chance = random.Random(draw)
        jobs = [
            run | {"id": f"{run['id']}-{copy}", "release": chance.uniform(0, options.within)}
            for run in runs
            for copy in range(options.copies)
        ]
        file = options.workload.with_name(f"meet-{draw}.json")
        file.write_text(json.dumps({"jobs": jobs}))
        print(file)


if __name__ == "__main__":
    main()
