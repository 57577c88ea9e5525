"""penstock what-if: other policies beside what was recorded, and replays."""

import gzip
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from records.random_days import RecordedClock, header, write

from penstock import cli, registry
from penstock.model import Job, JobEnded, JobStarted, PhaseBegan, PhaseEnded, Site, Woke
from penstock.records import Entry, PolicySpec, Record, RecordWriter
from penstock.sim import engine, metrics
from penstock.sim.evaluate import packs, what_ran
from penstock.sim.evaluate.policy_runs import HIGHER_IS_BETTER
from penstock.sim.evaluate.what_if import Check
from penstock.sim.workload import Workload

METRICS = tuple(HIGHER_IS_BETTER)


def workload() -> Workload:
    """Five jobs whose phases meet all the time, three of them often."""
    jobs = [(3.0, 2.0, 12), (4.0, 2.5, 10), (3.5, 1.5, 12), (30.0, 12.0, 2), (25.0, 15.0, 2)]
    counts = [count for *_, count in jobs]
    return Workload(
        compute=[compute for compute, _, count in jobs for _ in range(count)],
        io=[io for _, io, count in jobs for _ in range(count)],
        offsets=[sum(counts[:j]) for j in range(len(jobs) + 1)],
        release=[0.0, 0.5, 1.0, 1.5, 2.0],
        ids=[f"job-{j}" for j in range(len(jobs))],
    )


def recorded(
    directory: Path,
    policy: str = "fair-share",
    *,
    options: dict[str, Any] | None = None,
    **more: Any,
) -> Path:
    made = header(policy, site=Site(), **more)
    if options:
        made = msgspec.structs.replace(made, sharing=PolicySpec(policy=policy, options=options))
    clock = RecordedClock(workload(), made)
    clock.run()
    (path,) = write(directory / f"records-{made.run}-{policy}", made, clock.entries)
    return path


def test_gains_are_relative_to_what_ran_simulated(penstock: Any, directory: Path) -> None:
    path = recorded(directory)
    chosen = ("--policies", "set-10,fair-share,greedy-yield", "--json")
    result = penstock("what-if", str(path), *chosen).json
    assert list(result) == [
        "record",
        "kind",
        "sharing",
        "baseline",
        "ran",
        "verdict",
        "judged",
        "not_judged",
        "model_check",
        "job_error",
        "policies",
        "skipped",
    ]
    assert (result["kind"], result["sharing"], result["ran"]) == ("sharing", *2 * ["fair-share"])
    assert result["policies"]["set-10"]["needs"] == ["w_iter"]
    assert result["policies"]["set-10"]["decisions"] is None
    assert (result["judged"], result["not_judged"]) == (True, None)
    alone = penstock("compare", str(path), *chosen).json["policies"]
    base = result["policies"]["fair-share"]
    for policy, figures in result["policies"].items():
        assert {m: figures[m] for m in METRICS} == {m: alone[policy][m] for m in METRICS}
        expected = figures["utilization"] / base["utilization"] - 1
        assert figures["gain"]["utilization"] == pytest.approx(expected)
    assert result["record"]["jobs"] == 5


@pytest.mark.parametrize("policy", ["fair-share", "set-10", "exclusive-fcfs"])
def test_a_record_of_a_policy_asked_about_it_gains_nothing(
    penstock: Any, directory: Path, policy: str
) -> None:
    """By definition; and as the record is of a simulation, the model error is rounding."""
    result = penstock(
        "what-if", str(recorded(directory, policy)), "--policies", policy, "--json"
    ).json
    own = result["policies"][policy]
    assert set(own["gain"].values()) == {0.0}
    assert set(own["beyond_model_error"].values()) == {False}
    assert own["jobs"] == {"gain": [], "lose": []}
    assert list(result["model_check"]) == list(METRICS)
    for metric, check in result["model_check"].items():
        assert check["error"] == pytest.approx(check["simulated"] / check["recorded"] - 1)
        assert abs(check["error"]) < 1e-9, metric


@pytest.mark.parametrize("other", ["fair-share", "set-10", "exclusive-fcfs"])
def test_the_record_of_one_policy_predicts_another(
    penstock: Any, directory: Path, other: str
) -> None:
    """A closed loop: the same jobs recorded under another policy are what was predicted."""
    path = recorded(directory, "exclusive-fcfs", run="a")
    predicted = penstock("what-if", str(path), "--policies", other, "--json").json["policies"]
    truth = metrics.measure(engine.simulate(workload(), registry.sharing(other), site=Site()))
    second = penstock("what-if", str(recorded(directory, other, run="b")), "--json").json
    for metric in METRICS:
        assert predicted[other][metric] == pytest.approx(getattr(truth, metric), rel=1e-9)
        assert second["model_check"][metric]["recorded"] == pytest.approx(
            predicted[other][metric], rel=1e-9
        )


def slowed(directory: Path, factor: float) -> Path:
    """A record in which all took longer than its isolated I/O explains: the model is off."""
    lines = recorded(directory).read_bytes().splitlines()
    first, *rest = [json.loads(line) for line in lines]
    for line in rest:
        line["time"] *= factor
    path = directory / "slowed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *rest)))
    return path


def test_what_is_within_the_model_error_is_no_gain(penstock: Any, directory: Path) -> None:
    """The rule that ran once "gained" 22% over its own record, and others 24%, in green."""
    exact = penstock("what-if", str(recorded(directory)), "--policies", "set-10", "--json").json
    assert exact["policies"]["set-10"]["beyond_model_error"]["utilization"]
    path = str(slowed(directory, 4.0))
    off = penstock("what-if", path, "--policies", "set-10", "--json").json
    own, other = off["policies"]["fair-share"], off["policies"]["set-10"]
    assert abs(off["model_check"]["io_slowdown"]["error"]) > abs(other["gain"]["io_slowdown"])
    assert not any(other["beyond_model_error"].values())
    assert not any(own["beyond_model_error"].values())
    assert other["jobs"] == {"gain": [], "lose": []}
    out = penstock("what-if", path, "--policies", "set-10").out
    assert out.startswith("model check: fair-share ran; simulated: utilization ")
    assert "*" not in out
    assert "within error" in out
    assert "do not decide by this" in out
    assert "gains most" not in out


@pytest.mark.parametrize(
    ("recorded", "simulated", "value", "beyond"),
    [
        (0.5, 0.5, 0.51, True),
        (0.5, 0.5, 0.5002, False),  # a difference of less than one in a thousand
        (0.5, 0.6, 0.69, False),
        (0.5, 0.6, 0.73, True),
        (0.5, 0.6, 0.71, False),  # more than the error in itself, but 18% after 20%
        (0.5, 0.1, 0.19, False),  # 90% after 80%, but a small part of the error in itself
        (0.5, 0.4, 0.29, True),
        (math.nan, 0.6, 0.9, False),
        (0.0, 0.6, 0.9, False),
    ],
)
def test_beyond_the_model_error(
    recorded: float, simulated: float, value: float, beyond: bool
) -> None:
    assert Check(recorded=recorded, simulated=simulated).is_exceeded(value) is beyond


def test_errors_of_jobs_that_cancel_out_are_errors() -> None:
    """A metric that fits by luck: one job too long, another too short."""
    lucky = Check(recorded=0.5, simulated=0.5, least=0.1)
    assert not lucky.is_exceeded(0.54)
    assert lucky.is_exceeded(0.56)


def test_the_jobs_error_is_that_of_their_run_times(penstock: Any, directory: Path) -> None:
    """All run times four times as long as their simulation, but for what jobs computed."""
    result = penstock("what-if", str(slowed(directory, 4.0)), "--policies", "set-10", "--json").json
    jobs = penstock("what-if", str(recorded(directory)), "--policies", "set-10", "--json").json
    assert jobs["job_error"] < 1e-9
    assert 0.05 < result["job_error"] < 0.75
    own = result["policies"]["set-10"]
    for metric, beyond in own["beyond_model_error"].items():
        assert not beyond or abs(own["gain"][metric]) > result["job_error"]


@pytest.mark.parametrize(
    ("mode", "ran"),
    [
        ("observe", "fair-share"),
        ("advise", "fair-share"),
        ("off", "fair-share"),
        ("enforce", "set-10"),
        (None, "set-10"),
    ],
)
def test_what_ran_depends_on_the_mode(
    penstock: Any, directory: Path, mode: str | None, ran: str
) -> None:
    """Nobody waits in other modes than enforce."""
    path = recorded(directory, "set-10", mode=mode)
    result = penstock("what-if", str(path), "--policies", "greedy-yield", "--json").json
    assert (result["ran"], result["record"]["mode"]) == (ran, mode)
    assert set(result["policies"]) == {"greedy-yield", ran}
    unsaid = [note for note in result["record"]["notes"] if "does not say in which mode" in note]
    assert len(unsaid) == (mode is None)


def test_what_ran_keeps_its_options(penstock: Any, directory: Path) -> None:
    """As its record has them, not the defaults."""
    path = recorded(directory, "periodic-greedy-yield", options={"period": 3.0}, mode="enforce")
    result = penstock("what-if", str(path), "--policies", "fair-share", "--json").json
    shown = result["policies"]["periodic-greedy-yield"]["io_slowdown"]
    made, default = (
        metrics.measure(engine.simulate(workload(), sharing, site=Site())).io_slowdown
        for sharing in (
            registry.sharing("periodic-greedy-yield", {"period": 3.0}),
            registry.sharing("periodic-greedy-yield"),
        )
    )
    assert shown == pytest.approx(made, rel=1e-9)
    assert shown != pytest.approx(default, rel=1e-3)


def changed(directory: Path) -> list[Path]:
    """A run that was observed for 20 s, and enforced afterwards."""
    made = header("set-10", site=Site(), mode="observe", run="ab")
    clock = RecordedClock(workload(), made)
    clock.run()
    with RecordWriter(directory / "changed", made, flush=0.01) as writer:
        for entry in clock.entries:
            if entry.event.time > 20:
                writer.set_modes("enforce", {})
            writer.write(entry.event, entry.actions, entry.bytes)
    return sorted((directory / "changed").iterdir())


def test_a_record_in_which_the_mode_changed_says_so(penstock: Any, directory: Path) -> None:
    parts = changed(directory)
    assert [Record(part).header.mode for part in parts] == ["observe", "enforce"]
    result = penstock("what-if", *map(str, parts), "--policies", "fair-share", "--json").json
    assert (result["ran"], result["record"]["mode"]) == ("set-10", "enforce")
    (note,) = [note for note in result["record"]["notes"] if note.startswith("what ran changed")]
    assert "part 1 fair-share (mode observe, 2" in note
    assert note.endswith("only part 2 is used here")
    assert result["record"]["files"] == [str(parts[1])]
    assert penstock("what-if", *map(str, parts), "--check").status == 0


def test_a_policy_file_that_ran_is_simulated_only_if_trusted(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = directory / "mine.py"
    mine.write_text(
        "from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs\n"
        "class Mine(ExclusiveFcfs): ...\n"
        "open(__file__ + '.ran', 'w').close()\n"
    )
    path = recorded(directory, "exclusive-fcfs", mode="enforce")
    path.write_bytes(path.read_bytes().replace(b'"exclusive-fcfs"', f'"{mine}:Mine"'.encode(), 1))
    refused = penstock("what-if", str(path), "--policies", "fair-share")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.endswith("give --trust mine.py:Mine\n"), "the whole option, from here"
    assert str(directory) not in refused.err.partition("what ran")[2], "others may read it"
    assert not Path(f"{mine}.ran").exists()
    arguments = ("--policies", "fair-share", "--trust", f"{mine}:Mine", "--json")
    assert penstock("what-if", str(path), *arguments).json["ran"] == f"{mine}:Mine"
    monkeypatch.chdir(directory)
    named = penstock("what-if", str(path), "--policies", "fair-share,./mine.py:Mine", "--json").json
    assert named["ran"] == "./mine.py:Mine", "who names it trusts it"
    assert set(named["policies"]) == {"fair-share", "./mine.py:Mine"}


def test_who_gains_and_loses_most(penstock: Any, directory: Path) -> None:
    path = recorded(directory)
    result = penstock("what-if", str(path), "--policies", "exclusive-fcfs", "--json").json
    jobs = result["policies"]["exclusive-fcfs"]["jobs"]
    assert jobs["lose"]
    for job in jobs["lose"] + jobs["gain"]:
        assert job["change"] == pytest.approx(job["simulated"] / job["ran"] - 1)
        assert job["ran"] == pytest.approx(job["recorded"])
    lost = [job["change"] for job in jobs["lose"]]
    assert lost == sorted(lost, reverse=True)
    assert min(lost) > 0
    assert all(job["change"] < 0 for job in jobs["gain"])
    simulated = penstock(
        "simulate", str(path), "--policy", "exclusive-fcfs", "--jobs", "--json"
    ).json
    assert simulated["makespan"] == result["policies"]["exclusive-fcfs"]["makespan"]


def test_people_see_the_model_check_first(penstock: Any, directory: Path) -> None:
    out = penstock("what-if", str(recorded(directory)), "--policies", "set-10,fair-share").out
    assert out.startswith("model check: fair-share ran; simulated: utilization +0.00%, max stretch")
    rows = {line.split("  ")[0].strip() for line in out.splitlines()}
    assert {"recorded", "fair-share, simulated", "model error", "set-10", "fair-share"} <= rows
    assert "set-10: " in out
    assert "set-10 differs from fair-share, which ran, in " in out
    assert "makespan: from the beginning of the record" in out


def test_the_verdict_says_in_which_metric_each_policy_differs(
    penstock: Any, directory: Path
) -> None:
    """One that differs in the makespan alone read as if it differed in utilization."""
    given = ("what-if", str(recorded(directory)), "--policies", "set-10,exclusive-fcfs")
    result = penstock(*given, "--json").json
    for name in ("set-10", "exclusive-fcfs"):
        beyond = result["policies"][name]["beyond_model_error"]
        metrics = [metric.replace("_", " ") for metric in beyond if beyond[metric]]
        every = len(metrics) == len(beyond)
        assert f"{name} in {'all metrics' if every else ', '.join(metrics)}" in result["verdict"]
    assert result["verdict"].startswith("2 of 2 policies differ from fair-share, which ran, (")


def test_the_bar_of_a_gain_is_printed_with_the_error_that_sets_it(
    penstock: Any, directory: Path
) -> None:
    """A metric's own error, or that of run times, which may be larger."""
    result = penstock(
        "what-if", "--json", "--policies", "set-10", path := str(slowed(directory, 1.05))
    ).json
    for metric, check in result["model_check"].items():
        least = max(result["job_error"], abs(check["error"]))
        assert check["bar"] >= least - 1e-12
        assert check["by_run_times"] == (check["bar"] == result["job_error"])
        gain = result["policies"]["set-10"]["gain"][metric]
        assert result["policies"]["set-10"]["beyond_model_error"][metric] == (
            abs(gain) > check["bar"]
        ), metric
    assert any(check["by_run_times"] for check in result["model_check"].values())
    out = penstock("what-if", path, "--policies", "set-10").out
    assert "a gain must exceed: by the error of run times in " in out


def test_packers_are_asked_about_the_same_jobs(penstock: Any, directory: Path) -> None:
    path = str(recorded(directory, "exclusive-fcfs"))
    options = ("--packing", "first-fit,pack-partition", "--set", "site.nodes=2")
    packing = penstock("what-if", path, *options, "--json").json["packing"]
    assert (packing["sharing"], packing["nodes"]) == ("exclusive-fcfs", 2)
    assert list(packing["policies"]) == ["first-fit", "pack-partition"]
    jobs = workload()
    jobs = Workload(
        compute=jobs.compute, io=jobs.io, offsets=jobs.offsets, release=[0.0] * 5, ids=jobs.ids
    )
    for name, measured in packing["policies"].items():
        packer = registry.policy("packing", name)
        run = packs.run(jobs, packer, registry.sharing("exclusive-fcfs"), Site(nodes=2))
        assert measured == pytest.approx(asdict(packs.measure(run)))
    out = penstock("what-if", path, *options).out
    assert "packers compare with each other" in out
    refused = penstock("what-if", path, "--packing", "first-fit")
    assert refused.status == 2
    assert "--set site.nodes=N" in refused.err


def test_all_policies_that_the_record_can_feed(penstock: Any, directory: Path) -> None:
    result = penstock("what-if", str(recorded(directory)), "--json").json
    assert "set-10" in result["policies"]
    assert [entry["policy"] for entry in result["skipped"]] == ["clairvoyant-sets"]


def test_policies_know_what_the_recorded_ones_did(penstock: Any, directory: Path) -> None:
    path = recorded(directory, "set-10", learn={})
    arguments = ("what-if", str(path), "--policies", "set-10", "--json")
    learned = penstock(*arguments).json
    assert learned["record"]["knowledge"] == "learned"
    exact = penstock(*arguments, "--knowledge", "exact").json
    assert exact["record"]["knowledge"] == "exact"
    assert exact["policies"] != learned["policies"]


def test_the_window_counts_for_both(penstock: Any, directory: Path) -> None:
    arguments = ("what-if", str(recorded(directory)), "--policies", "set-10", "--json")
    result = penstock(*arguments, "--window", "20:60").json
    assert result["policies"]["set-10"]["window"] == [20, 60]
    inside, all_of_it = (
        r["model_check"]["utilization"] for r in (result, penstock(*arguments).json)
    )
    assert inside["recorded"] != all_of_it["recorded"]
    for metric, check in result["model_check"].items():
        assert check["error"] == pytest.approx(0, abs=1e-9), f"{metric}: both are cut by time"
    shown = penstock(*arguments[:-1], "--window", "20:60").out
    assert "; of the whole run, run times are off by 0.00% per job" in shown
    assert "set-10: of the whole run, gains most" in shown
    assert "of the whole run" not in penstock(*arguments[:-1]).out


def test_what_was_cut_is_told(penstock: Any, directory: Path) -> None:
    job = Job(id="a", serial=0)
    events = [
        JobStarted(time=0.0, job=job),
        PhaseBegan(time=1.0, job="a", resources=(0,)),
        PhaseEnded(time=3.0, job="a", resource=0, io=1.0, idle=0.5),
        Woke(time=9.0),
    ]
    (path,) = write(directory / "r", header(), [Entry(event=event) for event in events])
    with path.open("ab") as file:
        file.write(b'{"event":"Wo')
    out = penstock("what-if", str(path), "--policies", "fair-share").out
    assert "note: 1 job still ran when the record ended" in out
    assert "note: ends of phases were noticed 500 ms late on average" in out
    assert "line 6 breaks off" in out


def test_jobs_without_io_are_counted_and_what_follows_the_last_phase_is_no_iteration(
    penstock: Any, directory: Path
) -> None:
    """A job that Penstock does not see looks like one that computes."""
    jobs = [Job(id=name, serial=serial) for serial, name in enumerate("abc")]
    events: list[Any] = [JobStarted(time=0.0, job=job) for job in jobs]
    for time, job in enumerate(jobs[:2], 1):
        events.append(PhaseBegan(time=2.0 * time, job=job.id, resources=(0,)))
        events.append(PhaseEnded(time=2.0 * time + 1, job=job.id, resource=0, io=1.0))
    events += [JobEnded(time=9.0, job=job.id) for job in jobs]
    (path,) = write(directory / "r", header(), [Entry(event=event) for event in events])
    result = penstock("what-if", str(path), "--policies", "fair-share", "--json").json
    assert "1 job had no I/O phase, counted as computing" in result["record"]["notes"]
    assert (result["record"]["jobs"], result["record"]["iterations"]) == (3, 2)


EXAMPLE = str(Path(__file__).parents[2] / "examples" / "record.jsonl")


def test_the_example_is_of_real_jobs_on_an_emulated_file_system(penstock: Any) -> None:
    """So its model check has an error, and what it calls a gain exceeds it."""
    arguments = ("what-if", EXAMPLE, "--policies", "set-10,longest-io")
    result = penstock(*arguments, "--json").json
    assert result["record"]["source"] == "emulated"
    assert result["record"]["missing"] == {"events": 0, "unmatched": 0, "matters": False}
    error = result["model_check"]["utilization"]["error"]
    assert 0 < abs(error) < result["policies"]["set-10"]["gain"]["utilization"]
    assert "better in utilization: set-10" in result["verdict"]
    check, second, *rest = penstock(*arguments).out.splitlines()
    assert check.startswith("model check: ")
    assert second == "this record is of a site whose file system was emulated"
    assert not any("emulated" in line for line in rest)
    assert penstock("what-if", EXAMPLE, "--check").status == 0
    inside = penstock(*arguments, "--window", "60:240", "--json").json
    assert inside["policies"]["set-10"]["window"] == [60.0, 240.0]


def test_the_verdict_says_what_gets_worse_and_a_note_that_the_mode_is_unknown(
    penstock: Any, directory: Path
) -> None:
    path = str(recorded(directory))
    result = penstock("what-if", path, "--policies", "set-10", "--json").json
    policy = result["policies"]["set-10"]
    assert policy["gain"]["utilization"] > 0
    worse = [
        m.replace("_", " ")
        for m, gain in policy["gain"].items()
        if gain < 0 and policy["beyond_model_error"][m]
    ]
    assert worse
    assert f"better in utilization: set-10 (worse in {', '.join(worse)})" in result["verdict"]
    assert any("does not say in which mode" in note for note in result["record"]["notes"])
    inside = penstock("what-if", path, "--policies", "set-10", "--window", "10:60", "--json")
    for metric, check in inside.json["model_check"].items():
        assert check["error"] == pytest.approx(0, abs=1e-6), f"{metric}: its error is zero"


def test_a_simulated_record_is_said_to_be_one(penstock: Any, directory: Path) -> None:
    """Its model error is zero by construction, and tells nothing of a site."""
    sentence = what_ran.SOURCES["simulated"]
    assert "the model check compares the simulator with itself" in sentence
    path = str(recorded(directory, source="simulated"))
    result = penstock("what-if", path, "--policies", "set-10", "--json").json
    assert result["record"]["source"] == "simulated"
    assert result["record"]["notes"][0] == sentence
    out = penstock("what-if", path, "--policies", "set-10").out
    assert out.splitlines()[1] == sentence
    assert out.count("simulator") == 1
    live = penstock("what-if", str(recorded(directory, run="b")), "--policies", "set-10").out
    assert "this record is" not in live


@pytest.mark.parametrize("version", [1, 2])
def test_no_gain_is_called_where_lines_are_missing(
    penstock: Any, directory: Path, version: int
) -> None:
    path = recorded(directory, version=version)
    arguments = ("what-if", str(path), "--policies", "set-10,fair-share")
    assert penstock(*arguments, "--json").json["policies"]["set-10"]["beyond_model_error"][
        "utilization"
    ]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20] + lines[27:]))
    result = penstock(*arguments, "--json").json
    missing = result["record"]["missing"]
    assert missing["matters"] is True
    assert result["judged"] is False
    assert result["not_judged"] in result["verdict"]
    assert missing["events"] == (7 if version == 2 else None)
    assert result["verdict"].startswith("no gain is called, because ")
    policy = result["policies"]["set-10"]
    assert not any(policy["beyond_model_error"].values())
    assert policy["jobs"] == {"gain": [], "lose": []}
    out = penstock(*arguments).out
    assert "not judged" in out
    assert "*" not in out.replace("* best", "")
    assert "gains most" not in out


def test_check_proves_that_decisions_repeat(penstock: Any, directory: Path) -> None:
    path = recorded(directory, "set-10", learn={})
    answer = penstock("what-if", str(path), "--check")
    assert (answer.status, answer.out.endswith("same decisions\n")) == (0, True)
    assert penstock("what-if", str(path), "--check", "--json").json["same"] is True


def test_check_shows_the_first_difference_and_fails(penstock: Any, directory: Path) -> None:
    path = recorded(directory, "set-10")
    wrong = directory / "wrong.jsonl.gz"
    lines = path.read_bytes().replace(b'"resource":0,"weight":0.1', b'"resource":0,"weight":0.5')
    wrong.write_bytes(gzip.compress(lines))
    answer = penstock("what-if", str(wrong), "--check")
    assert answer.status == 1
    assert "wrong.jsonl.gz, line 7" in answer.out
    assert "weight=0.5" in answer.out
    assert "weight=0.1" in answer.out
    again = penstock("what-if", str(wrong), "--check", "--json")
    assert again.status == 1
    assert json.loads(again.out)["first_difference"]["where"].endswith("line 7")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("missing.jsonl",), "no such file"),
        (("jobs.json",), "ends in none of .jsonl, .jsonl.gz"),
        (("record.jsonl", "--policies", "set-11"), "did you mean 'set-10'"),
        (("record.jsonl", "--check", "--policies", "set-10"), "leave out --policies"),
        (("record.jsonl", "--policies", "set-10", "--window", "1e8:2e8"), "choose another window"),
        (("record.jsonl", "record.jsonl"), "does not follow"),
        (("bad.jsonl",), "bad.jsonl, line 1 is not the header"),
        (("empty.jsonl",), "empty.jsonl is empty; a controller writes records"),
    ],
)
def test_wrong_input_is_one_line(
    penstock: Any, jobs: str, directory: Path, arguments: tuple[str, ...], answer: str
) -> None:
    recorded(directory).rename(directory / "record.jsonl")
    (directory / "bad.jsonl").write_text("{}\n")
    (directory / "empty.jsonl").touch()
    result = penstock("what-if", *arguments)
    assert result.status == 2
    assert answer in result.err
    assert result.err.count("\n") == 1


def test_a_directory_stands_for_its_last_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = (Path(__file__).parents[2] / "examples" / "record.jsonl").read_bytes()
    (tmp_path / "record-20260101-000000-aaaa-0001.jsonl").write_bytes(b"an older run\n")
    (tmp_path / "record-20260102-000000-bbbb-0001.jsonl").write_bytes(record)
    assert cli.main(["what-if", str(tmp_path), "--policies", "fair-share"]) == 0
    assert "recorded" in capsys.readouterr().out
    assert cli.main(["what-if", str(tmp_path / "none")]) == 2
    capsys.readouterr()
    assert cli.main(["what-if", str(tmp_path / "records")]) == 2
    assert "records: nothing is recorded yet" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cli.main(["what-if", str(tmp_path / "empty")]) == 2
    assert "has no records" in capsys.readouterr().err


def test_a_policy_file_is_trusted_by_the_name_that_is_typed(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records have the file's path from the root on; people name it from where they are."""
    (directory / "mine.py").write_text(
        "from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs\n"
        "class Mine(ExclusiveFcfs): ...\n"
    )
    path = str(recorded(directory, f"{directory / 'mine.py'}:Mine"))
    monkeypatch.chdir(directory)
    assert penstock("what-if", path, "--check").status == 2
    assert penstock("what-if", path, "--check", "--trust", "./other.py:Mine").status == 2
    assert penstock("what-if", path, "--check", "--trust", "./mine.py:Mine").status == 0


def test_as_live_bounds_waits_here_too(penstock: Any, directory: Path) -> None:
    record = str(recorded(directory))
    arguments = ("what-if", record, "--policies", "exclusive-fcfs", "--json")
    plain, again = penstock(*arguments).json, penstock(*arguments).json
    bounded = penstock(*arguments, "--as-live", "--set", "live.max-wait=0.05").json
    assert plain == again
    assert plain != bounded
