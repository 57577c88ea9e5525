"""penstock patterns: models are made, judged and shown, and wrong input is said in a line."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.learn.detection import samples


def test_the_shipped_model_is_shown(penstock: Any) -> None:
    answer = penstock("patterns", "show", "--json").json
    assert answer["version"] == 1
    assert answer["classes"] == ["file-per-process", "shared-contiguous", "shared-strided"]
    assert answer["made"]["sizes"] == [32768, 262144]
    out = penstock("patterns", "show").out
    assert all(name in out for name in answer["features"])


def test_the_shipped_model_is_judged_by_what_it_has_not_seen(penstock: Any) -> None:
    answer = penstock("patterns", "evaluate", "--several-clients", "--json").json
    assert answer["sizes"] == [65536, 131072]
    assert answer["accuracy"] >= 0.99
    assert sum(map(sum, answer["matrix"])) + answer["unknown"] == answer["observations"] == 960
    out = penstock("patterns", "evaluate").out
    assert "64, 128 KiB" in out
    assert "sensitivity" in out


def test_a_tree_is_made_judged_and_shown_as_rules(penstock: Any, directory: Path) -> None:
    made = penstock("patterns", "train", "--out", "model.json", "--kind", "tree", "--json").json
    assert made["validated, several clients an I/O node"]["accuracy"] >= 0.99
    scores = penstock("patterns", "evaluate", "--model", "model.json", "--json").json
    assert scores["accuracy"] == made["validated"]["accuracy"]
    rules = penstock("patterns", "show", "--model", "model.json").out
    assert "jump <= " in rules
    assert "shared-strided (" in rules
    content = json.loads((directory / "model.json").read_text())
    assert content["made"]["of"] == "observations.csv"


def test_accesses_that_no_model_was_trained_with_are_rarely_wrong(penstock: Any) -> None:
    """The model alone takes nearly all that is in no class for one of its three."""
    answer = penstock("patterns", "evaluate", "--off-grid", "--json").json
    none = {
        name: [one for one in scores if one["pattern"] == "none"] for name, scores in answer.items()
    }
    total = sum(one["unknown"] + one["wrong"] for one in none["detected"])
    assert sum(one["wrong"] for one in none["model alone"]) > 0.8 * total
    assert sum(one["wrong"] for one in none["detected"]) < 0.05 * total
    for before, after in zip(answer["model alone"], answer["detected"], strict=True):
        assert before["kind"] == after["kind"]
        assert after["wrong"] <= before["wrong"], after
        if after["kind"].startswith("on-grid"):
            assert after["wrong"] == 0
    out = penstock("patterns", "evaluate", "--off-grid").out
    assert "random-own-files" in out
    assert "wrong alone" in out


def test_observations_of_ones_own_are_learnt_from(penstock: Any, directory: Path) -> None:
    own = [one for one in samples.shipped() if one.request == 65536]
    samples.write(directory / "own.csv", own)
    result = penstock("patterns", "train", "own.csv", "--out", "m.json", "--sizes", "64KiB",
                      "--kind", "forest", "--trees", "5", "--features", "thesis")  # fmt: skip
    assert result.status == 0, result.err
    assert "handles, smallest, largest, size, distance" in result.out
    scores = penstock("patterns", "evaluate", "--model", "m.json", "--json").json
    assert scores["sizes"] == [32768, 131072, 262144], "all but what it has seen"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("train", "none.csv", "--out", "m.json"), "none.csv cannot be read"),
        (("train", "--out", "no/m.json"), "there is no directory"),
        (("train", "--out", "m.json", "--features", "jumps"), "did you mean 'jump'"),
        (("train", "--out", "m.json", "--sizes", "1KiB"), "give some of 32KiB,64KiB,128KiB,256KiB"),
        (("train", "--out", "m.json", "--sizes", "lots"), "--sizes"),
        (("evaluate", "--model", "none.json"), "none.json cannot be read"),
        (("evaluate", "--sizes", "0"), "at least one byte"),
        (("show", "--model", "none.json"), "none.json cannot be read"),
        (("measure", "--out", "seen.csv", "--interval", "soon"), "--interval"),
        (("measure", "--out", "seen.csv", "--processes", "0"), "--processes 0: give 1 to"),
        (("measure", "--out", "seen.csv", "--seconds", "100 ms"), "too short"),
        (("measure", "--out", "seen.csv", "--emulate", "targts=4"), "targts"),
        (("measure", "--out", "o.csv", "--off-grid", "--sizes", "4KiB"), "--off-grid goes with"),
        (("evaluate", "--off-grid", "--sizes", "4KiB"), "leave out --sizes"),
        (("evaluate", "none.csv", "--off-grid"), "none.csv cannot be read"),
    ],
)
def test_wrong_input_is_said_in_a_line(penstock: Any, args: tuple[str, ...], message: str) -> None:
    result = penstock("patterns", *args)
    assert result.status == 2, result
    assert message in result.err
    assert result.err.count("\n") == 1
