"""What a site knows of applications is shown, imported and forgotten, whether it is up or down."""

import getpass
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live.other_users import AS_ROOT, as_nobody

from penstock.cli.common.live_options import launch_errors
from penstock.errors import InputError
from penstock.learn.imported import Imported, ImportedApplication
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory

EXAMPLE = Path(__file__).parents[2] / "examples" / "curves.json"
STATE = ("--state", "s")
USER = getpass.getuser()


def written(name: str, *applications: dict[str, Any], **more: Any) -> str:
    Path(name).write_text(json.dumps({"applications": applications} | more))
    return name


def ior(**fields: Any) -> dict[str, Any]:
    return {"application": "ior", "curve": {"1": 10, "2": "20 MB/s"}} | fields


@pytest.fixture(autouse=True)
def state_directory(penstock: Any) -> None:
    """A site that was up before."""
    Path("s").mkdir(mode=0o700)


@pytest.fixture
def up(penstock: Any) -> Iterator[None]:
    Path("data").mkdir()
    assert penstock("up", "--root", "data", "--io-nodes", "8", *STATE).status == 0
    yield
    launcher.down(StateDirectory(Path("s")))


@pytest.fixture(params=["up", "down"])
def site(request: pytest.FixtureRequest) -> str:
    """A site whose controller runs, and one that has only a store."""
    if request.param == "up":
        request.getfixturevalue("up")
    return str(request.param)


def shown(penstock: Any, *words: str) -> dict[str, Any]:
    return {one["application"]: one for one in penstock("curves", "show", *words, "--json").json}


def test_a_file_is_imported_shown_and_forgotten(penstock: Any, site: str) -> None:
    assert penstock("curves", "import", str(EXAMPLE), *STATE).out == "imported 2 applications\n"
    known = shown(penstock, *STATE)
    point = {"median": 28.9e6, "low": 28.9e6, "high": 28.9e6, "observations": 0}
    assert known["ior"]["curve"]["1"] == point
    assert list(known["ior"]["curve"]) == ["1", "2", "4"]
    assert (known["ior"]["user"], known["ior"]["nodes"]) == (USER, 4)
    assert {one["source"] for one in known.values()} == {"imported"}
    assert known["ior"]["volume"]["median"] == 2**30
    assert known["ior"]["compute"]["median"] == 120.0
    assert known["solver"]["w_iter"]["median"] == 600.0
    table = penstock("curves", "show", "ior", *STATE).out
    assert "imported" in table
    assert "solver" not in table
    assert penstock("curves", "forget", "ior", "--nodes", "3", *STATE).status == 2
    assert penstock("curves", "forget", "ior", "--nodes", "4", *STATE).status == 0
    assert list(shown(penstock, *STATE)) == ["solver"]
    wrong = penstock("curves", "forget", "solvr", *STATE)
    assert "did you mean 'solver'?" in wrong.err
    assert penstock("curves", "forget", "--all", *STATE, "--json").json == {"forgotten": 1}
    assert shown(penstock, *STATE) == {}
    assert penstock("curves", "show", *STATE).out == "no application is known\n"


def test_what_is_imported_outlives_the_controller_and_a_second_import_adds(
    penstock: Any, up: None
) -> None:
    written("a.json", ior(volume="3 MB"))
    written("b.json", ior(curve={"2": 30, "4": 50}, compute=7))
    for name in ("a.json", "b.json"):
        assert penstock("curves", "import", name, *STATE).status == 0
    penstock("down", *STATE)
    [known] = shown(penstock, *STATE).values()
    points = {n: point["median"] for n, point in known["curve"].items()}
    assert points == {"1": 10e6, "2": 30e6, "4": 50e6}
    assert (known["volume"]["median"], known["compute"]["median"]) == (3e6, 7.0)


def test_up_imports_a_file_or_starts_nothing(penstock: Any) -> None:
    Path("data").mkdir()
    start = ("up", "--root", "data", "--io-nodes", "2", *STATE, "--curves")
    too_many = penstock(*start, written("many.json", ior(curve={"1": 10, "8": 20})))
    assert too_many.status == 2
    assert "application 'ior': the curve has a bandwidth for 8 I/O nodes; the site has 2" in (
        too_many.err
    )
    assert not StateDirectory(Path("s")).is_up()
    try:
        assert penstock(*start, written("good.json", ior())).status == 0
        assert list(shown(penstock, *STATE)) == ["ior"]
    finally:
        launcher.down(StateDirectory(Path("s")))


def test_a_mistyped_state_directory_or_user_is_told(penstock: Any) -> None:
    """A new store was made where no site is; curves of nobody were taken in silence."""
    file = written("a.json", ior())
    mistyped = penstock("curves", "import", file, "--state", "fresh")
    assert mistyped.status == 2
    assert "no state directory" in mistyped.err
    assert not Path("fresh").exists()
    assert penstock("curves", "import", file, "--state", "fresh", "--create").status == 0
    nobody = penstock("curves", "import", file, "--user", "nosuchuser", *STATE)
    assert (nobody.status, "no user 'nosuchuser'" in nobody.err) == (0, True)


def test_profiles_are_imported_as_far_as_the_site_has_io_nodes(penstock: Any) -> None:
    """The import that --help promises failed by its key, then by points beyond the site."""
    darshan = pytest.importorskip("darshan", reason="PyDarshan is not installed")
    log = str(Path(darshan.__path__[0]) / "examples" / "example_logs" / "example.darshan")
    profiled = ("profile", log, "--curves", "mn4", "--cores", "32", "--out", "prof.json")
    assert penstock(*profiled).status == 0
    Path("data").mkdir()
    assert penstock("up", "--root", "data", "--io-nodes", "4", *STATE).status == 0
    try:
        beyond = penstock("curves", "import", "prof.json", *STATE)
        assert beyond.status == 2
        assert "prof.json" in beyond.err
        assert "--within 4" in beyond.err
        imported = penstock("curves", "import", "prof.json", "--within", "4", *STATE)
        assert imported.status == 0, imported.err
        assert "left out the bandwidth with 8" in imported.out
        [known] = shown(penstock, *STATE).values()
        assert max(map(int, known["curve"])) == 4
        assert (known["application"], known["nodes"]) == ("vpicio_uni", 64)
        assert penstock("curves", "import", "prof.json", "--within", "0", *STATE).status == 2
    finally:
        launcher.down(StateDirectory(Path("s")))


def test_jobs_files_of_other_verbs_are_read(penstock: Any) -> None:
    """curves.json of `explore` has patterns' names; profiles have programs and users."""
    explored = {"id": "write", "nodes": 2, "curve": {"0": 9, "1": 10}, "volume": 100}
    profiled = {"id": "x", "executable": "/apps/ior", "user": "ann", "curve": {"1": 1, "2": 2}}
    without = {"id": "none", "nodes": 4}
    jobs = {"unit": "MiB/s", "emulated": None, "jobs": [explored, profiled, without]}
    Path("jobs.json").write_text(json.dumps(jobs))
    assert penstock("curves", "import", "jobs.json", *STATE).status == 0
    known = shown(penstock, *STATE)
    assert set(known) == {"write", "ior"}
    assert known["ior"]["user"] == "ann"
    assert known["write"]["curve"]["1"]["median"] == 10 * 2**20
    assert known["write"]["volume"] is None, "of a whole run, not of a phase"
    chosen = ("--only", "write", "--application", "solver", "--user", "bob")
    assert penstock("curves", "import", "jobs.json", *chosen, *STATE).status == 0
    assert shown(penstock, "--user", "bob", *STATE)["solver"]["nodes"] == 2
    several = penstock("curves", "import", "jobs.json", "--application", "solver", *STATE)
    assert "there are 2; give --only" in several.err
    unknown = penstock("curves", "import", "jobs.json", "--only", "wrte", *STATE)
    assert "did you mean 'write'" in unknown.err


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (ior(curve={"1": 0, "2": 20}), "the bandwidth with 1 I/O nodes is 0"),
        (ior(curve={"1": -1, "2": 20}), "the bandwidth with 1 I/O nodes is -1e+06"),
        (ior(curve={"1": "nan", "2": 20}), "'nan' is not a bandwidth"),
        (ior(curve={"1": "10 MB", "2": 20}), "'10 MB' is not a bandwidth"),
        (ior(curve={"1": 1e300, "2": 20}), "the bandwidth with 1 I/O nodes is 1e+306"),
        (ior(curve={"4": 20}), "the curve has one count, 4"),
        (ior(curve={"one": 1, "2": 20}), "'one' is not a number of resources"),
        (ior(curve={"1": 1, "01": 20}), "the count 1 is given twice"),
        (ior(curve={str(n): 1 for n in range(17)}), "17 counts; give at most 16"),
        (ior(curve={}), "nothing is said of it"),
        (ior(volume=0), "volume is 0"),
        (ior(compute="-3 s"), "give zero or more"),
        (ior(w_iter=0), "w_iter is 0"),
        (ior(nodes=0), "nodes"),
        (ior(application=""), "its name is empty"),
        (ior(application="x" * 10_000), "a name has 10,000 characters; give at most 512 bytes"),
        (ior(curv={}), "did you mean 'curve'"),
        ({"curve": {"1": 1, "2": 2}}, "'application' is missing"),
    ],
)
def test_bad_input_is_named_and_nothing_of_the_file_is_imported(
    penstock: Any, application: dict[str, Any], message: str
) -> None:
    """NaN itself is no JSON; the file's other application is good."""
    written("good.json", ior())
    assert penstock("curves", "import", "good.json", *STATE).status == 0
    written("bad.json", {"application": "good", "curve": {"1": 1, "2": 2}}, application)
    refused = penstock("curves", "import", "bad.json", *STATE)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("penstock: error: bad.json: ")
    assert message in refused.err
    assert len(refused.err) < 400
    assert list(shown(penstock, *STATE)) == ["ior"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"applications": [{"application": "a", "curve": {"1": NaN, "2": 2}}]}', "NaN"),
        ("{", "cut off"),
        ('{"jobs": [], "applications": []}', 'one of "applications", "jobs" and "profiles"'),
        ("{}", 'one of "applications", "jobs" and "profiles"'),
        ('{"applications": []}', "it has 0 applications with a curve; give 1 to 500"),
        ('{"applications": [], "unit": "furlongs"}', "unit"),
    ],
)
def test_files_that_are_no_curves_are_refused(penstock: Any, text: str, message: str) -> None:
    Path("bad.json").write_text(text)
    refused = penstock("curves", "import", "bad.json", *STATE)
    assert refused.status == 2
    assert message in refused.err
    missing = penstock("curves", "import", "missing.json", *STATE)
    assert (missing.status, "No such file" in missing.err) == (2, True)


def test_a_site_knows_its_size_and_nothing_is_known_where_nothing_ran(
    penstock: Any, up: None
) -> None:
    beyond = written("many.json", ior(), ior(application="b", curve={"1": 1, "9": 2}))
    refused = penstock("curves", "import", beyond, *STATE)
    assert "application 'b': the curve has a bandwidth for 9 I/O nodes; the site has 8" in (
        refused.err
    )
    assert shown(penstock, *STATE) == {}
    nowhere = penstock("curves", "show", "--state", "nowhere")
    assert nowhere.status == 2
    assert "no controller has run there" in nowhere.err
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("words", [("forget",), ("forget", "ior", "--all")])
def test_forget_needs_a_name_or_all(penstock: Any, words: tuple[str, ...]) -> None:
    refused = penstock("curves", *words, *STATE)
    assert (refused.status, "or --all" in refused.err) == (2, True)


def test_many_applications_come_in_parts(penstock: Any, up: None) -> None:
    names = [f"app-{k:03}" for k in range(45)]
    written("many.json", *(ior(application=name) for name in names))
    assert penstock("curves", "import", "many.json", *STATE).status == 0
    assert [one["application"] for one in penstock("curves", "show", *STATE, "--json").json] == (
        names
    )


@pytest.mark.security
@AS_ROOT
def test_users_see_import_and_forget_their_own_alone(penstock: Any, up: None) -> None:
    written("mine.json", ior())
    written("theirs.json", ior(application="theirs", user="nobody"))
    for name in ("mine.json", "theirs.json"):
        assert penstock("curves", "import", name, *STATE).status == 0
    state = StateDirectory(Path("s"))
    for path in (*state.folder.parents, state.folder, state.controller):
        path.chmod(path.stat().st_mode | 0o011 | (0o006 if path == state.controller else 0))

    def ask(message: messages.Message, answer: type[Any]) -> str:
        def answered() -> object:
            with ControlConnection(state.controller) as controller:
                try:
                    return controller.ask(message, answer)
                except InputError as error:
                    return error

        return as_nobody(answered)

    seen = ask(messages.GetApplications(), messages.Applications)
    assert "application='theirs'" in seen
    assert "application='ior'" not in seen
    assert "applications=[]" in ask(messages.GetApplications(user=USER), messages.Applications)
    mine = ImportedApplication(
        user=USER, application="ior", imported=Imported(curve={1: 1.0, 2: 1.0})
    )
    request = messages.ImportKnowledge(applications=[mine])
    assert f"user nobody cannot import curves of user '{USER}'" in ask(request, messages.Done)
    forget = messages.ForgetApplications(user=USER)
    assert "cannot forget applications" in ask(forget, messages.Forgotten)
    own = messages.ForgetApplications(user="nobody")
    assert "Forgotten(applications=1)" in ask(own, messages.Forgotten)
    with launch_errors():
        [left] = shown(penstock, *STATE).values()
    assert left["curve"]["1"]["median"] == 10e6
