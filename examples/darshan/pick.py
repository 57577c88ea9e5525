"""Picks a policy from the output of `penstock compare --json` on several workloads.

    penstock compare meet-*.json --json | python3 pick.py

It picks the highest mean utilization among the policies whose worst-off job (the largest stretch)
does no worse than with fair-share, and prints in how many workloads the choice is the same.
"""

import json
import sys
from typing import Any

USUAL = "fair-share"


def best(policies: dict[str, Any]) -> str:
    worst = policies[USUAL]["max_stretch"]
    fair = {name: results for name, results in policies.items() if results["max_stretch"] <= worst}
    return max(fair, key=lambda name: fair[name]["utilization"])


def main() -> None:
    results = json.load(sys.stdin)
    choice = best(results["policies"])
    ours, usual = results["policies"][choice], results["policies"][USUAL]
    times = sum(best(file["policies"]) == choice for file in results["files"])
    print(f"choice: {choice}")
    for metric in ("utilization", "max_stretch", "io_slowdown"):
        print(f"  {metric}: {ours[metric]:.3f}, with {USUAL} {usual[metric]:.3f} (simulated)")
    print(f"  the choice in {times} of {len(results['files'])} workloads")


if __name__ == "__main__":
    main()
