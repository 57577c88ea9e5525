"""penstock compare: the same figures as simulate, side by side."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock import registry
from penstock.cli.common.comparison_table import COLUMNS
from penstock.sim.evaluate import policy_runs

METRICS = ("utilization", "max_stretch", "io_slowdown", "min_yield", "efficiency", "makespan")


def test_all_policies_by_default_with_simulate_s_figures(penstock: Any, jobs: str) -> None:
    result = penstock("compare", jobs, "--json").json
    assert set(result["policies"]) == set(registry.table("sharing"))
    alone = penstock("simulate", jobs, "--policy", "exclusive-fcfs", "--json").json
    together = result["policies"]["exclusive-fcfs"]
    assert {m: together[m] for m in METRICS} == {m: alone[m] for m in METRICS}
    ranked = [figures["utilization"] for figures in result["policies"].values()]
    assert ranked == sorted(ranked, reverse=True)


def test_gains_are_over_fair_share_or_else_over_the_first(penstock: Any, jobs: str) -> None:
    result = penstock("compare", jobs, "--json").json
    fair, fcfs = (result["policies"][name] for name in ("fair-share", "exclusive-fcfs"))
    assert (result["base"], result["workloads"], result["kind"]) == ("fair-share", 1, "sharing")
    assert fcfs["gain"] == pytest.approx(fcfs["utilization"] / fair["utilization"] - 1)
    makespan = fcfs["gains"]["makespan"]["value"]
    assert makespan == pytest.approx(1 - fcfs["makespan"] / fair["makespan"])
    assert fair["gain"] == 0
    given = ("--policies", "exclusive-fcfs,set-10", "--json")
    assert penstock("compare", jobs, *given).json["base"] == "exclusive-fcfs"
    assert "relative to exclusive-fcfs" in penstock("compare", jobs, *given[:2]).out


def test_one_workload_has_no_interval_and_no_choice(penstock: Any, jobs: str) -> None:
    result = penstock("compare", jobs, "--policies", "fair-share,set-10", "--json").json
    set_10 = result["policies"]["set-10"]
    assert (set_10["low"], set_10["high"], set_10["wins"]) == (None, None, 1)
    assert result["choice"]["policy"] is None
    out = penstock("compare", jobs, "--policies", "fair-share,set-10").out
    assert out.splitlines()[-1].endswith("does not tell how much of that is chance: add --seeds 8.")


@pytest.fixture
def drawn(penstock: Any) -> str:
    penstock("generate", "io-sets", "--jobs", "9", "--horizon", "600", "--out", "drawn.json")
    return "drawn.json"


def test_seeds_draw_a_generated_file_again(penstock: Any, drawn: str) -> None:
    """The workloads are those that `generate` writes with the seeds 1, 2 and 3."""
    names = [drawn]
    for seed in ("2", "3"):
        names.append(f"{seed}.npz")
        size = ("--jobs", "9", "--horizon", "600")
        penstock("generate", "io-sets", *size, "--seed", seed, "--out", names[-1])
    given = ("--policies", "fair-share,set-10", "--json")
    by_seed = penstock("compare", drawn, "--seeds", "3", *given).json
    by_file = penstock("compare", *names, *given).json
    assert by_seed["policies"] == by_file["policies"]
    assert by_seed["method"] == ["3 draws of the generator io-sets, seeds 1 to 3"]
    assert [file["seed"] for file in by_seed["files"]] == [1, 2, 3]
    again = penstock("compare", *names, "--seeds", "2", *given)
    assert again.status == 2
    assert "with --seeds 2 both would draw seed 2; give one" in again.err


def test_seeds_vary_any_other_file(penstock: Any, jobs: str) -> None:
    given = ("--policies", "fair-share,set-10,exclusive-fcfs", "--json")
    result = penstock("compare", jobs, "--seeds", "6", *given).json
    (method,) = result["method"]
    assert method.startswith("jobs.json and 5 variants of it, in which each job is released later")
    one, *varied = result["files"]
    assert one["policies"] == penstock("compare", jobs, *given).json["files"][0]["policies"]
    assert all(file["policies"] != one["policies"] for file in varied)
    assert {(f["jobs"], f["iterations"], f["omega"]) for f in result["files"]} == {
        (one["jobs"], one["iterations"], one["omega"])
    }
    assert result == penstock("compare", jobs, "--seeds", "6", *given).json


def test_a_generated_file_that_was_changed_is_varied(
    penstock: Any, drawn: str, directory: Path
) -> None:
    content = json.loads((directory / drawn).read_text())
    content["jobs"][0]["phases"][0][0] += 1
    (directory / drawn).write_text(json.dumps(content))
    (method,) = penstock("compare", drawn, "--seeds", "2", "--json").json["method"]
    assert "it was changed after it was generated" in method
    content["generator"]["preset"] = "of-mine"
    (directory / drawn).write_text(json.dumps(content))
    (method,) = penstock("compare", drawn, "--seeds", "2", "--json").json["method"]
    assert "1 variant of it" in method


def test_intervals_wins_needs_and_live(penstock: Any, drawn: str) -> None:
    names = "fair-share,set-10,clairvoyant-sets,exclusive-fcfs"
    result = penstock("compare", drawn, "--seeds", "6", "--policies", names, "--json").json
    for name, figures in result["policies"].items():
        values, base = (
            [file["policies"][n]["utilization"] for file in result["files"]]
            for n in (name, "fair-share")
        )
        assert figures["wins"] == sum(v > b for v, b in zip(values, base, strict=True))
        assert figures["gain"] == pytest.approx(sum(values) / sum(base) - 1)
        assert figures["low"] <= figures["gain"] <= figures["high"]
    needs = {name: (f["needs"], f["live"]) for name, f in result["policies"].items()}
    assert needs == {
        "fair-share": ([], True),
        "set-10": (["w_iter"], True),
        "clairvoyant-sets": (["profile"], False),
        "exclusive-fcfs": ([], True),
    }
    assert result["choice"]["policy"] != "clairvoyant-sets"
    out = penstock("compare", drawn, "--seeds", "6", "--policies", names).out
    assert "/6 " in out
    assert "6 draws of the generator io-sets, seeds 1 to 6" in out
    for cell in ("profile", "w_iter", "nothing", "yes, learnt", "no"):
        assert cell in out


def test_the_last_line_takes_what_is_better_for_sure(penstock: Any, directory: Path) -> None:
    """A short job behind a long transfer: fair-share halves its wait on every workload."""
    long = {"id": "long", "phases": [[1, 60]] * 3}
    short = [{"id": f"s{k}", "phases": [[5, 1]] * 30} for k in range(3)]
    (directory / "w.json").write_text(json.dumps({"jobs": [long, *short]}))
    given = ("compare", "w.json", "--seeds", "8", "--policies", "exclusive-fcfs,fair-share")
    choice = penstock(*given, "--json").json["choice"]
    assert choice["policy"] == "fair-share"
    assert penstock(*given).out.splitlines()[-1].startswith("Keep fair-share")
    alike = ("compare", "w.json", "--seeds", "8", "--policies", "lowest-id,exclusive-fcfs,set-10")
    result = penstock(*alike, "--json").json
    assert result["choice"]["policy"] == "set-10"
    assert result["choice"]["reason"].startswith("take set-10: +")
    assert "it can run live (w_iter: learnt)" in result["choice"]["reason"]
    assert "--knowledge learned" in penstock(*alike).out.splitlines()[-1]


@pytest.mark.parametrize(
    ("given", "conditions", "caution"),
    [
        ("", "exact, an ideal site", "--as-live --knowledge learned"),
        ("--knowledge learned", "learned, an ideal site", "--as-live"),
        ("--knowledge noisy:0.1 --seed 3", "noisy:0.1, seed 3, an ideal site", "--as-live"),
        ("--as-live", "exact; as live: no phase waits longer", "--knowledge learned"),
        ("--as-live --knowledge learned", "learned; as live: no phase waits longer", ""),
    ],
)
def test_what_was_simulated_is_said_and_what_a_live_choice_lacks(
    penstock: Any, directory: Path, given: str, conditions: str, caution: str
) -> None:
    """greedy-com was taken for live by an ideal site, where --as-live shows no gain."""
    long = {"id": "long", "phases": [[1, 60]] * 3}
    short = [{"id": f"s{k}", "phases": [[5, 1]] * 30} for k in range(3)]
    (directory / "w.json").write_text(json.dumps({"jobs": [long, *short]}))
    few = ("compare", "w.json", "--seeds", "8", "--policies", "lowest-id,set-10")
    result = penstock(*few, *given.split(), "--json").json
    assert re.split("[,;]", conditions)[0] == result["knowledge"]
    assert result["noise_seed"] == (3 if "seed 3" in conditions else None)
    assert (result["as_live"] is not None) == ("--as-live" in given)
    assert result["choice"]["policy"] == "set-10"
    out = penstock(*few, *given.split()).out
    assert f"\nsimulated: knowledge {conditions}" in out
    end = f"Chosen for an ideal site: before you take it live, add {caution}.\n"
    assert out.endswith(end) if caution else "ideal site" not in out


def test_two_workloads_are_few(penstock: Any, drawn: str) -> None:
    command = ("compare", drawn, "--policies", "fair-share,set-10", "--seeds")
    assert "two workloads say little" in penstock(*command, "2").out
    assert "two workloads say little" not in penstock(*command, "3").out


def test_policies_that_do_not_differ(penstock: Any, drawn: str, directory: Path) -> None:
    (directory / "mine.py").write_text(
        "from penstock.policies.sharing.fair_share import FairShare\n"
        "class Mine(FairShare):\n"
        "    needs = frozenset({'w_iter'})\n"
    )
    given = ("compare", drawn, "--seeds", "4", "--policies", "fair-share,./mine.py:Mine", "--json")
    choice = penstock(*given).json["choice"]
    assert (choice["policy"], choice["tied"]) == ("fair-share", ["./mine.py:Mine"])
    assert "do not differ in any metric on these 4 workloads" in choice["reason"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_plot(penstock: Any, jobs: str, directory: Path, suffix: str) -> None:
    given = ("compare", jobs, "--policies", "fair-share,set-10", "--plot", f"g{suffix}")
    assert f"g{suffix}: drawn" in penstock(*given, "--seeds", "3").out
    if suffix == ".svg":
        assert "knowledge exact" in (directory / "g.svg").read_text()
    heads = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert (directory / f"g{suffix}").read_bytes().startswith(heads[suffix])
    assert penstock(*given[:-1], "g.gif").status == 2


def test_seeds_are_kept_and_added(penstock: Any, drawn: str, directory: Path) -> None:
    given = ("compare", drawn, "--policies", "fair-share,set-10", "--out", "kept")
    penstock(*given, "--seeds", "2")
    penstock(*given, "--seeds", "4")
    lines = (directory / "kept" / "cells.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 2 * 4
    assert "seed" in (directory / "kept" / "results.csv").read_text().splitlines()[0].split(",")


def test_several_files_give_means(penstock: Any, jobs: str) -> None:
    penstock("generate", "io-sets", "--jobs", "6", "--horizon", "200", "--out", "other.npz")
    arguments = ("--policies", "fair-share,set-10", "--json")
    result = penstock("compare", jobs, "other.npz", *arguments).json
    assert [file["file"] for file in result["files"]] == ["jobs.json", "other.npz"]
    for policy in ("fair-share", "set-10"):
        values = [file["policies"][policy]["max_stretch"] for file in result["files"]]
        assert result["policies"][policy]["max_stretch"] == pytest.approx(sum(values) / 2)


def test_a_policy_that_a_file_cannot_feed_is_left_out_with_the_reason(
    penstock: Any, jobs: str, directory: Path
) -> None:
    job = {"id": "a", "phases": [[6, 5]]}
    (directory / "plain.json").write_text(json.dumps({"jobs": [job]}))
    result = penstock("compare", jobs, "plain.json", "--json").json
    assert "clairvoyant-sets" not in result["policies"]
    assert "clairvoyant-sets" in result["files"][0]["policies"]
    (left_out,) = result["skipped"]
    assert (left_out["policy"], left_out["file"]) == ("clairvoyant-sets", "plain.json")
    assert "profile" in left_out["reason"]
    assert "skipped clairvoyant-sets on plain.json" in penstock("compare", "plain.json").out
    result = penstock("compare", "plain.json", "--policies", "clairvoyant-sets")
    assert result.status == 2
    assert result.err.startswith("penstock: error: plain.json: job 'a' has no positive hint")


def test_options_count_for_the_policy_they_belong_to(
    penstock: Any, jobs: str, directory: Path
) -> None:
    # c asks while a transfers, and b soon after: who of the two is next depends on the sign.
    phases = {"a": [[6, 5]], "b": [[8, 4]], "c": [[7, 1]]}
    listed = [{"id": name, "phases": pairs} for name, pairs in phases.items()]
    (directory / "three.json").write_text(json.dumps({"jobs": listed}))
    (directory / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def __init__(self, *, sign: float = 1.0):\n"
        "        self.sign = sign\n"
        "    def group(self, job):\n"
        "        return 'all'\n"
        "    def turn(self, request, view):\n"
        "        return self.sign * request.io\n"
    )
    mine = "./mine.py:Mine"
    arguments = ("compare", "three.json", "--policies", f"{mine},set-10", "--json")
    shortest = penstock(*arguments).json["policies"]
    turned = ("--set", f"sharing.policy={mine}", "--set", "sharing.options.sign=-1")
    longest = penstock(*arguments, *turned).json["policies"]
    assert shortest[mine]["max_stretch"] == pytest.approx(12 / 8)
    assert longest[mine]["max_stretch"] == pytest.approx(16 / 8)
    metrics = {m: longest["set-10"][m] for m in METRICS}
    assert metrics == {m: shortest["set-10"][m] for m in METRICS}


def test_processes_give_what_threads_give(
    penstock: Any, jobs: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n"
        "        return 'all'\n"
    )
    arguments = ("compare", jobs, "--policies", "./mine.py:Mine,exclusive-fcfs", "--json")
    threads = penstock(*arguments).json
    assert threads["policies"]["./mine.py:Mine"] == threads["policies"]["exclusive-fcfs"]
    monkeypatch.setattr(policy_runs, "PROCESSES_PAY", 0)
    assert penstock(*arguments).json == threads


def test_for_people_the_best_have_stars(penstock: Any, jobs: str) -> None:
    out = penstock("compare", jobs, "--policies", "fair-share,exclusive-fcfs").out
    assert "jobs.json: 2 jobs, 3 iterations" in out
    first, second = (
        line for line in out.splitlines() if line.startswith(("fair-share ", "exclusive-fcfs "))
    )
    assert first.startswith("exclusive-fcfs")
    # The largest stretch is the same, and has no star.
    assert first.count("*") == len(COLUMNS) - 1
    assert "22.0000*" in first
    assert second.split()[2] == "base", "no gain over itself"


def test_a_single_job_is_one_job(penstock: Any, directory: Path) -> None:
    (directory / "one.json").write_text(json.dumps({"jobs": [{"id": "a", "phases": [[6, 5]]}]}))
    out = penstock("compare", "one.json", "--policies", "fair-share,set-10").out
    assert out.startswith("one.json: 1 job, 1 iteration ")
    assert ": 1 job, 1 iteration " in penstock("simulate", "one.json").out


def test_a_narrow_terminal_drops_columns_and_breaks_no_word(
    penstock: Any, drawn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    given = ("compare", drawn, "--seeds", "3", "--policies", "fair-share,greedy-com,set-10")
    for columns in ("60", "80", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        out = penstock(*given).out
        table = re.sub(r"\x1b\[\d*m", "", out[: out.index("* best")]).splitlines()
        assert all(len(line.rstrip()) <= int(columns) for line in table)
        first_words = {line.split()[0] for line in table if line.split()}
        assert {"policy", "fair-share", "greedy-com", "set-10"} <= first_words
        assert "utilization" in out
        assert ("left out of this narrow terminal" in out) == (columns != "120")


def test_as_live_is_a_part_of_what_is_kept(penstock: Any, jobs: str) -> None:
    """Another max-wait gives other figures: cells of before do not count."""
    policies = ("compare", jobs, "--policies", "exclusive-fcfs", "--out", "kept", "--json")
    unbounded, wide, narrow, again = (
        penstock(*policies, *more).json["policies"]["exclusive-fcfs"]
        for more in (
            (),
            ("--as-live",),
            ("--as-live", "--set", "live.max-wait=0.4"),
            (),
        )
    )
    assert unbounded == again
    assert wide["makespan"] == unbounded["makespan"] == 22
    assert narrow["makespan"] == pytest.approx(22.6)


@pytest.mark.parametrize("seeds", ["1", "3"])
@pytest.mark.parametrize("generated", [False, True])
def test_a_workload_that_is_given_twice_is_refused(
    penstock: Any, jobs: str, drawn: str, directory: Path, *, seeds: str, generated: bool
) -> None:
    file = drawn if generated else jobs
    (directory / "copy.json").write_bytes((directory / file).read_bytes())
    for other in (file, "copy.json"):
        given = ("compare", file, other, "--seeds", seeds, "--policies", "fair-share,set-10")
        result = penstock(*given)
        assert result.status == 2
        assert f"penstock: error: {file}" in result.err
        assert "give one" in result.err or "give it once" in result.err


def test_a_better_policy_that_cannot_run_live_is_named(penstock: Any) -> None:
    """Sets by the true profile gain on every workload, and no controller knows the profile."""
    penstock("generate", "io-sets", "--horizon", "4000", "--out", "jobs.json")
    given = ("compare", "jobs.json", "--seeds", "8", "--policies", "fair-share,clairvoyant-sets")
    result = penstock(*given, "--json").json
    assert result["policies"]["clairvoyant-sets"]["low"] > 0
    assert "better, but not possible live: clairvoyant-sets (+" in result["choice"]["reason"]
    assert "no policy that can run live is better" in penstock(*given).out.splitlines()[-1]


MINE = (
    "from penstock.policies.base import ByArrival\n"
    "class Mine(ByArrival):\n"
    "    def group(self, job):\n"
    "        return 'all'\n"
    "    def turn(self, request, view):\n"
    "        return {answer}\n"
)


@pytest.mark.parametrize(("answer", "undeclared"), [("request.job.w_iter", True), ("1.0", False)])
def test_a_policy_that_reads_more_than_it_says_is_noted(
    penstock: Any, jobs: str, directory: Path, *, answer: str, undeclared: bool
) -> None:
    (directory / "mine.py").write_text(MINE.format(answer=answer))
    given = ("compare", jobs, "--policies", "fair-share,./mine.py:Mine")
    notes = penstock(*given, "--json").json["notes"]
    assert bool(notes) == undeclared
    for note in notes:
        assert "./mine.py:Mine needs, and whether it can run live, is not as shown" in note
        assert "it reads job.w_iter" in note
        assert "penstock policies check ./mine.py:Mine" in note
        assert note in penstock(*given).out


def test_a_wrong_answer_of_a_policy_is_not_a_line_of_the_simulator(
    penstock: Any, jobs: str, directory: Path
) -> None:
    (directory / "mine.py").write_text(MINE.format(answer="None"))
    error = penstock("simulate", jobs, "--policy", "./mine.py:Mine").err
    assert "turn() must return a number" in error
    assert "engine.py" not in error
    assert "by what one of its methods returned" in error
    # What the policy calls may raise far from its file: the line is still the policy's.
    (directory / "mine.py").write_text(MINE.format(answer="__import__('json').loads('[')"))
    assert "(mine.py, line 6)" in penstock("simulate", jobs, "--policy", "./mine.py:Mine").err


def test_a_file_without_classes(penstock: Any, jobs: str, directory: Path) -> None:
    (directory / "empty.py").write_text("x = 1\n")
    error = penstock("simulate", jobs, "--policy", "./empty.py:Mine").err
    assert error.endswith("policy file './empty.py' has no class 'Mine': it has no class\n")


def test_policies_that_do_not_differ_have_no_stars(penstock: Any, directory: Path) -> None:
    (directory / "one.json").write_text(json.dumps({"jobs": [{"id": "a", "phases": [[6, 5]]}]}))
    out = penstock("compare", "one.json", "--policies", "fair-share,set-10").out
    assert "*" not in out
    last = out.splitlines()[-1]
    assert last == "No choice: fair-share and set-10 do not differ in any metric on this workload."


def test_names_keep_their_small_letters(penstock: Any, jobs: str) -> None:
    last = penstock("compare", jobs, "--policies", "fair-share,set-10").out.splitlines()[-1]
    assert last.startswith("The best utilization is that of set-10, on one workload")


def test_jobs_that_never_compute_decide_nothing(penstock: Any, directory: Path) -> None:
    """Utilization is 0 under every policy; stretch and slowdown differ."""
    jobs = [{"id": "a", "phases": [[0, 9]]}, {"id": "b", "phases": [[0, 1]]}]
    (directory / "io.json").write_text(json.dumps({"jobs": jobs}))
    for more in ((), ("--seeds", "3")):
        given = ("compare", "io.json", "--policies", "fair-share,exclusive-fcfs", *more)
        last = penstock(*given).out.splitlines()[-1]
        assert "do not differ in utilization, which decides, on th" in last
        assert "; only in max stretch" in last


@pytest.mark.parametrize(
    "verb", [("compare", "jobs.json"), ("sweep", "io-sets", "--over", "jobs=6")]
)
@pytest.mark.parametrize("seeds", ["0", "1001", "1000000000"])
def test_seeds_are_bounded(penstock: Any, jobs: str, verb: tuple[str, ...], seeds: str) -> None:
    result = penstock(*verb, "--seeds", seeds)
    assert result.status == 2
    assert f"{seeds} is not in the range 1<=x<=1000" in result.err


@pytest.mark.parametrize("seed", [-5, 2**64, 1.5, "1"])
def test_a_seed_that_no_generator_takes(
    penstock: Any, drawn: str, directory: Path, seed: object
) -> None:
    content = json.loads((directory / drawn).read_text())
    content["generator"]["seed"] = seed
    (directory / drawn).write_text(json.dumps(content))
    result = penstock("compare", drawn, "--seeds", "2", "--policies", "fair-share,set-10")
    assert result.status == 2
    assert result.err.startswith("penstock: error: drawn.json: generator.seed: ")
    assert "give what 'penstock generate' wrote, or leave it out" in result.err
    assert result.err.count("\n") == 1
