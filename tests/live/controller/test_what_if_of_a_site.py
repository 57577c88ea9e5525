"""What-if of real records: emulated sites from a cold start, ordinary commands.

What a busy machine cannot change is tested here: which policy ran, what is left out, and that
nothing within the model error is called a gain. How near predictions are is for `make rates`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.controller.turn_deployment import Deployed, deployed

from penstock import cli
from penstock.live.deployment import launcher

PHASES = Path(__file__).parents[2] / "dashboard" / "phases.py"
MIB = 2**20
PREDICTED = 0.25
"""By which part the utilization that a what-if predicts may differ from what then happens."""


def records(site: Deployed) -> str:
    return str(site.state.folder / "records")


def what_if(
    site: Deployed, capsys: pytest.CaptureFixture[str], policies: str
) -> tuple[dict[str, Any], str]:
    """Return the result of a what-if of a site's last run, and what people see."""
    capsys.readouterr()
    assert cli.main(["what-if", records(site), "--policies", policies, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert cli.main(["what-if", records(site), "--policies", policies]) == 0
    return result, capsys.readouterr().out


def ended(*runs: Any) -> None:
    for run in runs:
        assert run.wait(HANG) == 0


def copies(site: Deployed, *names: str, mib: int = 20) -> None:
    """Run ordinary commands at once, and wait for them."""
    words = ("dd", "if=/dev/zero", "bs=1M", f"count={mib}")
    ended(*(site.run(name, *words, f"of={site.root / name}") for name in names))


def nothing_is_claimed_within_the_error(result: dict[str, Any], out: str) -> None:
    ran, checks = result["ran"], result["model_check"]
    starred = False
    for policy, figures in result["policies"].items():
        for metric, beyond in figures["beyond_model_error"].items():
            least = max(abs(checks[metric]["error"] or 0.0), result["job_error"])
            assert not beyond or abs(figures["gain"][metric]) > least
            starred = starred or (beyond and figures["gain"][metric] > 0)
        for job in figures["jobs"]["gain"] + figures["jobs"]["lose"]:
            assert policy != ran
            assert abs(job["simulated"] - job["ran"]) > abs(job["ran"] - job["recorded"])
    assert set(result["policies"][ran]["gain"].values()) == {0.0}
    check, about, *_ = out.splitlines()
    assert about == "this record is of a site whose file system was emulated"
    mode = result["record"]["mode"]
    assert check.startswith(f"model check: {ran} ran (mode {mode}); simulated: ")
    assert result["record"]["source"] == "emulated"
    assert result["record"]["missing"] == {"events": 0, "unmatched": 0, "matters": False}
    assert starred or "*" not in out.replace("* best", "")
    assert checks["max_stretch"]["recorded"] >= 1 - 1e-9
    assert checks["efficiency"]["recorded"] <= 1 + 1e-9


def test_three_copies_that_were_observed(
    site: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    """The guide's own example once "gained" 22% under the very rule that had run."""
    declared = ("--set", "site.bandwidth=1 GiB/s", "--policy", "set-10")
    site.up(*declared, mode="observe")
    copies(site, "job1", "job2", "job3")
    launcher.down(site.state)
    result, out = what_if(site, capsys, "fair-share,set-10")
    assert (result["ran"], result["record"]["mode"]) == ("fair-share", "observe")
    assert result["record"]["policy"] == "set-10"
    assert result["record"]["jobs"] == 3
    nothing_is_claimed_within_the_error(result, out)
    # An emulated target is never faster than its rate, but for what it takes ahead of it.
    assert result["record"]["bandwidth"]["fitted"] < 400 * MIB
    assert "you said 1,024 MiB/s (site.bandwidth)" in out


def test_copies_that_are_cut_off_by_the_end_are_left_out(
    site: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    """`penstock down` while jobs write once made 200 MiB take 0.3 s in the simulation."""
    site.up(mode="enforce")
    copies(site, "whole", mib=4)
    cut = site.obedient("cut")
    cut.do("begin")
    cut.do("write 4")
    site.until("cut", lambda job: job.doing == "transferring")
    launcher.down(site.state)
    result, out = what_if(site, capsys, "fair-share")
    assert result["record"]["jobs"] == 1
    assert result["record"]["cuts"]["phases_unmeasured"] == 1
    assert result["record"]["cuts"]["jobs_cut"] == 1
    assert "note: 1 job left out: all its I/O was cut off" in out
    nothing_is_claimed_within_the_error(result, out)


def test_a_mode_that_changed_in_between(site: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    site.up(mode="observe")
    copies(site, "before", mib=4)
    site.penstock("mode", "enforce")
    copies(site, "after", mib=4)
    launcher.down(site.state)
    result, out = what_if(site, capsys, "set-10")
    expected = {"observe": "fair-share", "enforce": "exclusive-fcfs"}
    assert result["ran"] == expected[result["record"]["mode"]]
    assert "note: what ran changed: part 1 fair-share (mode observe, " in out
    assert "part 2 exclusive-fcfs (mode enforce, " in out
    nothing_is_claimed_within_the_error(result, out)


def loaded(folder: Path, mode: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the same jobs on a new site; return the what-if of its record."""
    folder.mkdir()
    with deployed(folder) as site:
        site.up(mode=mode)
        jobs = [("a", 1.0, 24, 6), ("b", 1.0, 24, 6), ("c", 2.0, 80, 3)]
        ended(
            *(
                site.run(name, sys.executable, str(PHASES), name, *map(str, shape))
                for name, *shape in jobs
            )
        )
        launcher.down(site.state)
        result, out = what_if(site, capsys, "fair-share,exclusive-fcfs")
    nothing_is_claimed_within_the_error(result, out)
    return result


@pytest.mark.rates
def test_a_what_if_predicts_what_then_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record of A predicts B, and that of B predicts A: `pytest -s -m rates` prints both."""
    observed = loaded(tmp_path / "observed", "observe", capsys)
    enforced = loaded(tmp_path / "enforced", "enforce", capsys)
    assert (observed["ran"], enforced["ran"]) == ("fair-share", "exclusive-fcfs")
    with capsys.disabled():
        for source, happened in ((observed, enforced), (enforced, observed)):
            predicted = source["policies"][happened["ran"]]["utilization"]
            truth = happened["model_check"]["utilization"]["recorded"]
            print(
                f"\nwhat-if of {source['ran']} on {happened['ran']}: utilization "
                f"{predicted:.3f}, then {truth:.3f} ({predicted / truth - 1:+.1%}); model error "
                f"{source['model_check']['utilization']['error']:+.1%}",
                end="",
            )
            assert predicted == pytest.approx(truth, rel=PREDICTED)
