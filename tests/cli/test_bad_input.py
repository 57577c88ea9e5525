"""Whatever is wrong with the input: status 2, one line that says what, where and what to do.

Nothing is written, and nothing is printed as if it were a result.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock import cli

POLICY = """
from penstock.policies.base import ByArrival
class Zero(ByArrival):
    def group(self, job): return 'all'
    def weight(self, job): return 0.0
class NotOne: pass
class Picky(ByArrival):
    def __init__(self, *, level: int = 1):
        if level > 9: raise ValueError('level is above 9')
    def group(self, job): return 'all'
"""
GOOD: dict[str, Any] = {"jobs": [{"id": "a", "phases": [[6, 5]]}]}


def jobs(*changes: dict[str, Any], **top: Any) -> str:
    """Return a workload of one job a change, which the change breaks."""
    return json.dumps({"jobs": [{"id": "a", "phases": [[6, 5]]} | c for c in changes], **top})


FILES = {
    "good.json": json.dumps(GOOD),
    "mine.py": POLICY,
    "broken.py": "def (",
    "empty.json": "",
    "cut.json": '{"jobs": [{"id": "a", "phases": [[6, 5], [6',
    "text.json": "hello",
    "garbage.json": "\x00\x01\x7f",
    "nan.json": '{"jobs": [{"id": "a", "phases": [[NaN, 5]]}]}',
    "infinity.json": '{"jobs": [{"id": "a", "phases": [[6, Infinity]]}]}',
    "list.json": "[]",
    "none.json": '{"jobs": []}',
    "typo.json": '{"job": []}',
    "negative.json": jobs({"phases": [[6, 5], [6, -1]]}),
    "triple.json": jobs({"phases": [[6, 5, 4]]}),
    "word.json": jobs({"phases": [[6, "soon"]]}),
    "volume.json": jobs({"phases": [[6, "1 GB"]]}),
    "nophases.json": jobs({"phases": []}),
    "idle.json": jobs({"phases": [[0, 0]]}),
    "huge.json": jobs({"phases": [[1e300, 1]]}),
    "twice.json": jobs({}, {}),
    "typo2.json": jobs({"node": 3}),
    "nodes.json": jobs({"nodes": 2.5}),
    "wide.json": jobs({"nodes": 64}),
    "share.json": jobs({"max_share": 0}),
    "resource.json": jobs({"resources": [3]}),
    "pack.json": jobs({"after": "p"}),
    "circle.json": jobs({"pack": "p", "after": "p"}),
    "horizon.json": jobs({}, horizon=-1),
    "text.npz": "hello",
    "text.csv": "hello",
    "row.csv": "job,compute,io\na,1,x\n",
    "log.swf": " ".join(["1"] * 18),
    "short.swf": "1 2 3",
    "notes.txt": "hello",
    "typo.toml": "[site]\nnods = 3\n",
    "syntax.toml": "[site\n",
    "policy.toml": "[sharing]\npolicy = 'set-01'\n",
    "bandwidth.toml": "[site]\nbandwidth = '0 GB/s'\n",
}

SIMULATE = ("simulate", "good.json")
CASES: list[tuple[tuple[str, ...], str]] = [
    # the command line itself
    (("simulat", "good.json"), r"unknown verb 'simulat'; did you mean 'simulate'"),
    (("simulate",), r"Missing argument 'FILE'.*penstock simulate --help"),
    ((*SIMULATE, "--polcy", "set-10"), r"No such option.*--polcy.*penstock simulate --help"),
    ((*SIMULATE, "--repeat", "0"), r"--repeat.*0 is not in the range"),
    ((*SIMULATE, "--repeat", "many"), r"--repeat.*'many' is not a valid integer"),
    ((*SIMULATE, "more.json"), r"unexpected extra argument"),
    (("config",), r"Missing command.*penstock config --help"),
    (("config", "shwo"), r"No such command 'shwo'"),
    # policies
    ((*SIMULATE, "--policy", "set-01"), r"--policy: unknown sharing policy.*did you mean 'set-10'"),
    ((*SIMULATE, "--policy", "./no.py:Mine"), r"--policy: policy file './no.py' does not exist"),
    (
        (*SIMULATE, "--policy", "broken.py:Mine"),
        r"cannot be loaded: line 1, SyntaxError",
    ),
    ((*SIMULATE, "--policy", "mine.py:Mine"), r"unknown class of mine.py 'Mine'"),
    (
        (*SIMULATE, "--policy", "mine.py:NotOne"),
        r"policy 'mine.py:NotOne': it has no method group\(\)",
    ),
    ((*SIMULATE, "--policy", "mine.py:Zero"), r"good.json: .*weight"),
    (
        (*SIMULATE, "--policy", "mine.py:Picky", "--set", "sharing.options.level=10"),
        r"--set: policy 'mine.py:Picky' cannot be constructed: level is above 9",
    ),
    ((*SIMULATE, "--policy", "clairvoyant-sets"), r"good.json: job 'a' has no positive hint 'prof"),
    ((*SIMULATE, "--set", "sharing.options.unknwon=1"), r"--set: unknown option.*did you mean"),
    ((*SIMULATE, "--set", "sharing.options.unknown=x"), r"--set: option 'unknown'.*expected int"),
    (("policies", "set-01"), r"unknown sharing policy 'set-01'; did you mean 'set-10'"),
    (("compare", "good.json", "--policies", "set-10,set-01"), r"unknown.*did you mean 'set-10'"),
    (("compare", "good.json", "--policies", "set-10,set-10"), r"--policies.*names a policy twice"),
    (("compare", "good.json", "--policies", ""), r"unknown sharing policy ''; known:"),
    # what to measure and know
    ((*SIMULATE, "--window", "5"), r"--window: window '5' is not BEGIN:END"),
    ((*SIMULATE, "--window", "9:5"), r"--window: window '9:5' is not.*it is empty"),
    ((*SIMULATE, "--window", "a:b"), r"--window: window 'a:b' is not BEGIN:END.*'a' is not a dur"),
    ((*SIMULATE, "--window", "-1:5"), r"--window: window.*zero or more"),
    ((*SIMULATE, "--window", "500:600"), r"good.json: no job is there between 500 and 600 s"),
    (
        (*SIMULATE, "--knowledge", "psychic"),
        r"--knowledge: knowledge 'psychic' is not one of exact",
    ),
    ((*SIMULATE, "--knowledge", "noisy:-1"), r"--knowledge:.*decades must be between 0 and 10"),
    ((*SIMULATE, "--seed", "x"), r"--seed: simulation.seed is 'x'; give a whole number"),
    ((*SIMULATE, "--io-ratio", "0.1"), r"--io-ratio and --w-iter are for .swf"),
    # where to write
    ((*SIMULATE, "--timeline", "missing/t.csv"), r"missing/t.csv: there is no directory missing"),
    ((*SIMULATE, "--timeline", "folder"), r"folder is a directory; give the name of a file"),
    ((*SIMULATE, "--timeline", "/dev/full"), r"/dev/full is not a regular file"),
    ((*SIMULATE, "--plot", "missing/g.png"), r"missing/g.png: there is no directory missing"),
    ((*SIMULATE, "--plot", "g.jpeg"), r"g.jpeg ends in none of .png, .svg, .pdf"),
    ((*SIMULATE, "--plot", "g"), r"g ends in none of .png, .svg, .pdf"),
    ((*SIMULATE, "--plot", "g.png", "--plot-window", "5"), r"--plot-window: window '5' is not"),
    ((*SIMULATE, "--plot", "g.png", "--plot-window", "500:600"), r"no job runs between 500 and"),
    ((*SIMULATE, "--plot-window", "0:5"), r"--plot-window.*--plot"),
    (("generate", "io-sets", "--out", "missing/w.json"), r"there is no directory missing"),
    (("generate", "io-sets", "--out", "w.csv"), r"'w.csv' ends in none of .json, .npz"),
    (("generate", "io-sets"), r"give --out FILE"),
    # what to generate
    (("generate",), r"give a preset: io-sets"),
    (("generate", "io-set", "--out", "w.json"), r"unknown preset 'io-set'; did you mean 'io-sets'"),
    (("generate", "io-sets", "--out", "w.json", "--jobs", "0"), r"--jobs is 0; give at least 1"),
    (("generate", "io-sets", "--out", "w.json", "--jobs", "-3"), r"--jobs is -3"),
    (("generate", "io-sets", "--out", "w.json", "--omega", "0"), r"omega = 0 cannot be reached"),
    (("generate", "io-sets", "--out", "w.json", "--omega", "nan"), r"omega = nan"),
    (("generate", "io-sets", "--out", "w.json", "--jobs", "2", "--omega", "1.999"), r"lower omega"),
    (("generate", "io-sets", "--out", "w.json", "--noise", "2"), r"noise = 2; give a value"),
    (("generate", "io-sets", "--out", "w.json", "--horizon", "x"), r"--horizon: 'x' is not a dur"),
    (("generate", "io-sets", "--out", "w.json", "--horizon", "0"), r"--horizon is 0"),
    (("generate", "io-sets", "--out", "w.json", "--seed", "-1"), r"--seed.*not in the range"),
    # the configuration
    ((*SIMULATE, "--config", "no.toml"), r"--config: there is no file 'no.toml'"),
    ((*SIMULATE, "--config", "typo.toml"), r"typo.toml: unknown key 'site.nods'; did you mean"),
    ((*SIMULATE, "--config", "syntax.toml"), r"syntax.toml is not valid TOML: .*line 1"),
    ((*SIMULATE, "--config", "policy.toml"), r"policy.toml: unknown sharing policy.*'set-10'"),
    ((*SIMULATE, "--config", "bandwidth.toml"), r"bandwidth.toml: site.bandwidth is 0 B/s"),
    ((*SIMULATE, "--set", "site.nodes"), r"--set 'site.nodes' is not of the form"),
    ((*SIMULATE, "--set", "sit.nodes=3"), r"--set: unknown section 'sit'; did you mean 'site'"),
    ((*SIMULATE, "--set", "site.nodes=-3"), r"--set: site.nodes is -3; give"),
    ((*SIMULATE, "--set", "site.resources=0"), r"--set: site.resources is 0; give at least 1"),
    ((*SIMULATE, "--set", "site.bandwidth=2 Gb/s"), r"--set: site.bandwidth.*did you mean 'GB/s'"),
    (("config", "show", "--set", "site.nods=3"), r"--set: unknown key 'site.nods'; did you mean"),
    # files of any format
    (("simulate", "no.json"), r"no.json: no such file"),
    (("simulate", "folder"), r"folder is a directory"),
    (("simulate", "folder.json"), r"folder.json is a directory"),
    (("simulate", "pipe.json"), r"pipe.json is not a regular file"),
    (("simulate", "/dev/zero"), r"/dev/zero.* ends in none of"),
    (("simulate", "notes.txt"), r"'notes.txt' ends in none of .json, .npz, .csv, .swf"),
    (("simulate", "empty.json"), r"empty.json is empty; write one with 'penstock generate"),
    (("simulate", "a\nb.json"), r"a b.json: no such file"),
    (("simulate", ""), r"is a directory"),
    (("compare", "good.json", "no.json"), r"no.json: no such file"),
    (("compare", "good.json", "negative.json"), r"negative.json: job 'a', phases\[1\], io is -1"),
    # JSON
    (("simulate", "cut.json"), r"cut.json: the JSON text ends too early"),
    (("simulate", "text.json"), r"text.json: line 1 is not valid JSON"),
    (("simulate", "garbage.json"), r"garbage.json: line 1 is not valid JSON"),
    (("simulate", "nan.json"), r"nan.json: line 1 has NaN.*give a finite number"),
    (("simulate", "infinity.json"), r"infinity.json: line 1 has Infinity.*give a finite number"),
    (("simulate", "list.json"), r"list.json: expected an object, got array; give"),
    (("simulate", "none.json"), r"none.json: jobs is empty; give at least one job"),
    (("simulate", "typo.json"), r"typo.json: unknown key 'job'; did you mean 'jobs'"),
    (("simulate", "typo2.json"), r"typo2.json: job 'a': unknown key 'node'; did you mean 'nodes'"),
    (("simulate", "negative.json"), r"negative.json: job 'a', phases\[1\], io is -1; give"),
    (("simulate", "triple.json"), r"triple.json: job 'a', phases\[0\]: expected .*give \[compute"),
    (("simulate", "word.json"), r"word.json: job 'a', phases\[0\], io: 'soon' is not a duration"),
    (("simulate", "volume.json"), r"volume.json: job 'a', phases\[0\], io.*set site.bandwidth"),
    (("simulate", "nophases.json"), r"nophases.json: job 'a' has no phases; give it at least"),
    (("simulate", "idle.json"), r"idle.json: job 'a' does nothing"),
    (("simulate", "huge.json"), r"huge.json: the phases and releases add up to 1e\+300 s"),
    (("simulate", "twice.json"), r"twice.json: jobs\[1\].id 'a' is used twice; give each"),
    (("simulate", "nodes.json"), r"nodes.json: job 'a', nodes: expected int, got float; give"),
    (("simulate", "wide.json", "--set", "site.nodes=8"), r"wide.json: .*needs 64 nodes.*has 8"),
    (("simulate", "share.json"), r"share.json: job 'a', max_share is 0"),
    (("simulate", "resource.json"), r"resource.json: job 'a' uses resource 3.*set site.resources"),
    (("simulate", "pack.json"), r"pack.json: job 'a', after: no job is in a pack"),
    (("simulate", "circle.json"), r"circle.json: packs wait for each other in a circle"),
    (("simulate", "horizon.json"), r"horizon.json: horizon is -1; give a positive number"),
    # other formats
    (("simulate", "text.npz"), r"text.npz: not an archive that 'penstock generate"),
    (("simulate", "text.csv"), r"text.csv: line 1: unknown column 'hello'; known: compute, io"),
    (("simulate", "row.csv"), r"row.csv: line 2: io: 'x' is not a duration; give seconds"),
    (("simulate", "log.swf"), r"log.swf: SWF has no I/O; say how to make it up: .*--io-ratio"),
    (("simulate", "log.swf", "--io-ratio", "2", "--w-iter", "9"), r"log.swf: io_ratio is 2; give"),
    (("simulate", "log.swf", "--io-ratio", "0.1", "--w-iter", "x"), r"--w-iter: 'x' is not a dur"),
    (("simulate", "short.swf", "--io-ratio", "0.1", "--w-iter", "9"), r"line 1 has 3 fields"),
]


@pytest.fixture
def inputs(directory: Path) -> Path:
    for name, text in FILES.items():
        (directory / name).write_text(text)
    (directory / "folder").mkdir()
    (directory / "folder.json").mkdir()
    os.mkfifo(directory / "pipe.json")
    return directory


def content(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
        if "__pycache__" not in path.parts
    }


@pytest.mark.parametrize(("arguments", "message"), CASES, ids=[" ".join(c[0]) for c in CASES])
def test_wrong_input(penstock: Any, inputs: Path, arguments: tuple[str, ...], message: str) -> None:
    before = content(inputs)
    result = penstock(*arguments)
    assert result.status == cli.WRONG_INPUT
    assert result.err.count("\n") == 1
    assert result.err.startswith("penstock: error: ")
    with pytest.raises(ValueError, match=message):
        raise ValueError(result.err)
    assert result.out == ""
    assert content(inputs) == before


def test_a_wrong_variable(penstock: Any, inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SITE__NODS", "3")
    result = penstock(*SIMULATE)
    assert result.status == cli.WRONG_INPUT
    assert "PENSTOCK_SITE__NODS: unknown key 'site.nods'; did you mean 'site.nodes'" in result.err


def test_a_file_that_may_not_be_read(
    penstock: Any, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", deny)
    result = penstock(*SIMULATE)
    assert result.status == cli.WRONG_INPUT
    assert result.err == "penstock: error: good.json cannot be read: permission denied\n"


def test_as_a_program(inputs: Path) -> None:
    command = [sys.executable, "-m", "penstock.cli"]
    wrong = subprocess.run([*command, "simulate", "no.json"], capture_output=True, text=True)  # noqa: PLW1510
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "penstock: error: no.json: no such file; check the name\n"
    right = subprocess.run([*command, *SIMULATE, "--json"], capture_output=True, text=True)  # noqa: PLW1510
    assert (right.returncode, right.stderr) == (0, "")
    assert json.loads(right.stdout)["makespan"] == 11


def test_a_reader_that_leaves_is_no_fault(inputs: Path) -> None:
    script = f"{sys.executable} -m penstock.cli policies --json | head -1"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[\n"
    assert result.stderr == ""
