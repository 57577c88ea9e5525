"""The Council of a deployment: real I/O nodes, real jobs, and what is learnt and kept of them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import HANG

from penstock.config.tuning import TuningSection
from penstock.core.council import Experience
from penstock.errors import InputError
from penstock.learn.detection.model import save, shipped
from penstock.learn.tuned import ENOUGH, TunedValues
from penstock.live.controller.detection import ModelFile
from penstock.live.controller.tuning import Checkpoint
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import IoNodeRecord, TuningStatus
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of
from penstock.live.store import Family, Knowledge, Store, WriteBehind
from penstock.model import Context, Value

PENSTOCK = (sys.executable, "-m", "penstock.cli")
WITHIN = HANG
CONTEXT = Context(operation="write", pattern="shared-strided", size=65536, load=4)
STRIDED = """
import os, sys
rank, ranks, stop = int(sys.argv[1]), 4, sys.argv[3]
fd = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
k = 0
while not os.path.exists(stop):
    os.pwrite(fd, bytes(65536), ((k * ranks + rank) % 4096) * 65536)
    k += 1
"""
"""One of four processes that write a shared file in turns, until told to stop."""
RANDOM = STRIDED.replace("((k * ranks + rank) % 4096)", "random.randrange(4096)").replace(
    "import os", "import random, os"
)
"""One of four that write it at random offsets."""


class Tuned:
    """A deployment whose window is tuned, and a job of four processes on it."""

    def __init__(self, folder: Path) -> None:
        self.state, self.root = StateDirectory(folder / "s"), folder / "data"
        self.stop = folder / "stop"
        self.root.mkdir()

    def penstock(self, *words: str, status: int = 0) -> str:
        verb, *rest = words
        command = [*PENSTOCK, verb, *rest, "--state", str(self.state.folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    def up(self, *more: str, mode: str = "enforce") -> None:
        self.penstock(
            *("up", "--root", str(self.root), "--io-nodes", "1", "--policy", "fair-share"),
            *("--scheduler", "twins-busy", "--tune", "window", "--mode", mode),
            *("--emulate", "targets=4,count=4,stripe=64KiB,rate=8MiB/s,latency=200us,switch=1ms"),
            *("--set", "tuning.interval=100 ms", *more),
        )

    @contextmanager
    def job(self, program: str = STRIDED, application: str = "strided") -> Iterator[None]:
        self.stop.unlink(missing_ok=True)
        ranks = " & ".join(
            f"'{sys.executable}' -c '{program}' {k} '{self.root}/f' '{self.stop}'" for k in range(4)
        )
        command = [*PENSTOCK, "run", "--state", str(self.state.folder)]
        command += ["--application", application, "--", "sh", "-c"]
        run = subprocess.Popen([*command, f"{ranks} & wait"])
        try:
            yield
        finally:
            self.stop.touch()
            assert run.wait(WITHIN) == 0

    def status(self) -> messages.Status:
        status: messages.Status = launcher.ask(self.state, messages.GetStatus(), messages.Status)
        return status

    def chosen(self) -> dict[str, Value]:
        """Return the values that are chosen for the I/O node."""
        chosen = self.status().io_nodes[0].chosen
        assert isinstance(chosen, dict)
        return chosen

    def until_running(self, application: str) -> None:
        """Wait until a job of an application runs."""
        end = time.monotonic() + WITHIN
        while time.monotonic() < end:
            running = [job for job in self.status().jobs if job.state == "running"]
            if any(job.executable == application for job in running):
                return
            time.sleep(0.05)
        raise AssertionError(f"no job of {application} runs")

    def until(self, holds: Callable[[TuningStatus, IoNodeRecord], bool]) -> None:
        """Wait until a condition holds of the tuning and of the I/O node."""
        end = time.monotonic() + WITHIN
        while time.monotonic() < end:
            status = self.status()
            if status.tuning is not None and holds(status.tuning, status.io_nodes[0]):
                return
            time.sleep(0.05)
        raise AssertionError(f"still {status.tuning} and {status.io_nodes[0]}")


@pytest.fixture
def tuned(tmp_path: Path) -> Iterator[Tuned]:
    site = Tuned(tmp_path)
    try:
        yield site
    finally:
        launcher.down(site.state)


def applications(site: Tuned) -> list[dict[str, Any]]:
    known: list[dict[str, Any]] = json.loads(site.penstock("curves", "show", "--json"))
    return known


def test_what_is_learnt_is_kept_with_the_application(tuned: Tuned) -> None:
    """In the store, by access pattern: it outlives the controller and the tuner's own state."""
    tuned.up()
    with tuned.job():
        tuned.until(lambda *_: any(one["tuned"] for one in applications(tuned)))
    tuned.penstock("down")
    (one,) = applications(tuned)
    windows = one["tuned"]["write shared-strided"]["window"]
    assert all(each["rate"] > 0 and each["intervals"] >= 1 for each in windows)
    assert (one["pattern"], one["request_size"]) == ("shared-strided", 65536)


def test_a_new_run_starts_from_what_its_application_did_best_with(tuned: Tuned) -> None:
    """Before any report: the next round is an hour away. Another application changes nothing."""
    values = TunedValues()
    for _ in range(ENOUGH):
        values = values.plus(CONTEXT, "depth", 4, 2e6).plus(CONTEXT, "depth", 16, 1e6)
    tuned.state.create()
    with WriteBehind(Store(f"sqlite:///{tuned.state.store}")) as keeper:
        family = Family(user=name_of(os.getuid()), executable="mine", nodes=1)
        keeper.learn(family, Knowledge(tuned=values, pattern="shared-strided"))
    tuned.up("--tune", "depth", "--set", "tuning.interval=1 h")
    with tuned.job(application="another"):
        tuned.until_running("another")
        assert tuned.chosen() == {"depth": 16}  # the default
    with tuned.job(application="mine"):
        tuned.until_running("mine")
        assert tuned.chosen() == {"depth": 4}
        assert "its I/O nodes start from what its application did best with" in (
            tuned.state.log.read_text()
        )


def learnt(site: Tuned) -> list[dict[str, Any]]:
    shown = json.loads(site.penstock("tuner", "show", "--json"))
    (learned,) = shown["learned"]
    contexts: list[dict[str, Any]] = learned["tuners"]["window"]["contexts"]
    return contexts


def test_top_shows_the_pattern_and_the_choice_while_a_real_job_runs(tuned: Tuned) -> None:
    tuned.up()
    with tuned.job():
        tuned.until(lambda tuning, node: tuning.rounds > 12 and node.operation == "write")
        for _ in range(20):  # ranks drift apart, and look otherwise for a while
            tuned.until(lambda _, node: node.pattern == "shared-strided")
            shown = tuned.penstock("top", "--once", "--interval", "0.1 s")
            if "shared-strided" in shown:
                break
        assert "shared-strided" in shown
        assert "window" in shown
        assert "discounted-ucb" in shown
    tuned.penstock("down")
    tried = {v for c in learnt(tuned) for v, n in zip(c["values"], c["count"], strict=True) if n}
    assert len(tried) == 7, "every window was tried"
    assert "*" in tuned.penstock("tuner", "show")


def test_a_job_of_no_known_pattern_has_the_sites_own_settings(tuned: Tuned) -> None:
    """Random offsets are no class: nothing is explored or learnt under the name of another."""
    tuned.up("--set", "io-node.window=3 ms")
    with tuned.job(RANDOM):
        seen = set()
        for _ in range(10):
            tuned.until(lambda _, node: node.operation == "write")
            status = tuned.status()
            assert status.tuning is not None
            node = status.io_nodes[0]
            seen.add((node.pattern, node.confidence, status.tuning.rounds))
            assert isinstance(node.tuned, dict)
            assert node.tuned["window"] == 0.003
            time.sleep(0.1)
        assert seen == {("unknown", 0.0, 0)}
        assert "unknown" in tuned.penstock("top", "--once", "--interval", "0.1 s")
    tuned.penstock("down")
    assert learnt(tuned) == []


def test_what_was_learnt_survives_a_killed_controller(tuned: Tuned) -> None:
    """The next controller goes on from the last checkpoint: it has little left to explore."""
    tuned.up()
    with tuned.job():
        tuned.until(lambda tuning, _: tuning.rounds > 20)
    tuned.penstock("down")
    (before,) = {
        c["pattern"]: c for c in learnt(tuned) if c["pattern"] == "shared-strided"
    }.values()
    tuned.up()
    with tuned.job():
        tuned.until(lambda tuning, _: tuning.rounds > 3)
        os.kill(int(tuned.state.lock.read_text()), signal.SIGKILL)
    (after,) = (c for c in learnt(tuned) if c["pattern"] == "shared-strided")
    assert after["seen"] >= before["seen"]
    assert before["seen"] >= 7


def test_a_site_that_is_observed_is_told_and_not_changed(tuned: Tuned) -> None:
    tuned.up(mode="observe")
    with tuned.job():
        tuned.until(lambda tuning, _: tuning.rounds > 6)
        status = tuned.status()
        assert status.tuning is not None
        assert status.tuning.applied is False
        assert "but sets none" in tuned.penstock("top", "--once", "--interval", "0.2 s")
    tuned.penstock("down")
    tried = {v for c in learnt(tuned) for v, n in zip(c["values"], c["count"], strict=True) if n}
    assert tried == {1e-3}, "what I/O nodes had all the time"


def test_with_the_mode_the_windows_go_back(tuned: Tuned) -> None:
    tuned.up()
    with tuned.job():
        tuned.until(lambda tuning, _: tuning.rounds > 12)
        tuned.penstock("mode", "observe")
        tuned.until(lambda tuning, node: not tuning.applied and node.tuned == {"window": 1e-3})


def test_an_io_node_that_does_not_answer_keeps_nobody_waiting(tuned: Tuned) -> None:
    tuned.up("--set", "tuning.deadline=50 ms")
    with tuned.job():
        tuned.until(lambda tuning, _: tuning.rounds > 2)
        pid = tuned.status().io_nodes[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(0.5)
        finally:
            os.kill(pid, signal.SIGCONT)
        tuning = tuned.status().tuning
        assert tuning is not None
        rounds = tuning.rounds
        tuned.until(lambda tuning, _: tuning.rounds > rounds + 2)


def test_a_window_is_not_tuned_where_nobody_has_one(tuned: Tuned) -> None:
    command = ("up", "--root", str(tuned.root), "--io-nodes", "1", "--tune", "window")
    assert "give --scheduler twins" in tuned.penstock(*command, status=2)
    assert "did you mean" in tuned.penstock(*command[:-1], "windw", status=2)


@pytest.mark.parametrize("fault", ["return 3000.0", "raise RuntimeError('no')"])
def test_a_tuner_that_is_out_of_its_mind_hurts_nobody(tuned: Tuned, fault: str) -> None:
    """Its answers are not set, the job goes on, and the deployment comes down as ever."""
    policy = tuned.root.parent / "mine.py"
    method = f"    def {{}}(self, *_):\n        {fault}\n"
    names = ("choose", "best", "learn", "learned", "restore")
    policy.write_text("class Mine:\n" + "".join(map(method.format, names)))
    tuned.up("--set", f"tuning.policy={policy}:Mine")
    with tuned.job():
        tuned.until(lambda tuning, node: tuning.faults > 3 and node.tuned == {"window": 1e-3})
        moved = tuned.status().forwarded_bytes
        end = time.monotonic() + WITHIN
        while tuned.status().forwarded_bytes <= moved:
            assert time.monotonic() < end
            time.sleep(0.1)
    tuned.penstock("down")
    assert not tuned.state.is_up()


def test_nothing_learnt_is_said(tuned: Tuned) -> None:
    assert "nothing was learned" in tuned.penstock("tuner", "show", status=2)


# What is kept, and the model in use.


def experience() -> Experience:
    return Experience({"window": TuningSection().tuner()})


def test_a_checkpoint_is_what_was_learnt(tmp_path: Path) -> None:
    first, second = experience(), experience()
    first.tuners["window"].learn(CONTEXT, 1e-3, 5e6)
    Checkpoint(tmp_path / "t", "discounted-ucb").write(first.learned())
    Checkpoint(tmp_path / "t", "discounted-ucb").read(second)
    assert second.learned() == first.learned()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b'{"format": 9}', b'{"format": 1}', b'{"format": 1, "learned": []}'),
        b'{"format": 1, "learned": {"version": 1, "tuners": {}, "accounts": [["read", 1]]}}',
    ],
)
def test_a_damaged_checkpoint_is_put_aside_and_never_overwritten(
    tmp_path: Path, content: bytes
) -> None:
    kept = Checkpoint(tmp_path, "discounted-ucb")
    for k in (1, 2):
        kept.path.write_bytes(content)
        kept.read(experience())
        assert (tmp_path / f"discounted-ucb.damaged-{k}").read_bytes() == content
    kept.write(experience().learned())
    assert msgspec.json.decode(kept.path.read_bytes())["format"] == 1


def test_what_was_learnt_of_other_parameters_stays(tmp_path: Path) -> None:
    both = Experience({"window": TuningSection().tuner(), "depth": TuningSection().tuner()})
    both.tuners["depth"].learn(CONTEXT, 4, 1e6)
    kept = Checkpoint(tmp_path, "discounted-ucb")
    kept.write(both.learned())
    only = experience()
    kept.read(only)
    kept.write(only.learned())
    again = Experience({"depth": TuningSection().tuner()})
    kept.read(again)
    assert again.tuners["depth"].best(CONTEXT, (4, 16)) == 4


def test_a_policy_has_a_file_of_its_own(tmp_path: Path) -> None:
    names = {Checkpoint(tmp_path, p).path.name for p in ("ucb1", "thompson", "/x/mine.py:Mine")}
    assert names == {"ucb1.json", "thompson.json", "mine-Mine.json"}


def test_a_model_is_exchanged_when_its_file_is(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save(shipped(), path)
    used = ModelFile(str(path))
    assert used.refresh() is None
    other = msgspec.structs.replace(shipped(), least_requests=1000)
    save(other, path)
    assert used.refresh() == other
    path.write_text("{")
    assert used.refresh() is None
    assert used.model == other, "a damaged one is not taken"
    path.unlink()
    assert used.refresh() is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tune": ["windw"]}, "did you mean"),
        ({"tune": ["window"], "values": {"depth": [1, 2]}}, "which is not in tuning.tune"),
        ({"tune": ["window"], "values": {"window": ["-1 s"]}}, "window"),
        ({"tune": ["depth"], "values": {"depth": [16]}}, "two or more"),
        ({"tune": ["depth"], "values": {"depth": ["x", 2]}}, "not a value of it"),
        ({"interval": "1 ms"}, "20 ms to 1 h"),
        ({"interval": "2 d"}, "interval"),
    ],
)
def test_sections_that_cannot_be_are_refused(given: dict[str, Any], why: str) -> None:
    section = msgspec.convert(given, TuningSection)

    def check() -> None:
        section.seconds()
        section.parameters({})

    with pytest.raises(InputError, match=why):
        check()


def test_what_the_site_gave_is_among_the_values() -> None:
    section = TuningSection(tune=("window",))
    (parameter,) = section.parameters({"window": 3e-3})
    assert parameter.default == 3e-3
    assert parameter.values[-1] == 3e-3
    assert len(parameter.values) == 8
