"""The systemd units are what systemd takes, and have what a site expects of daemons."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / "deploy/systemd").glob("*.service"))
OWN_USER = {"penstock-controller.service", "penstock-ionode@.service"}


def test_there_are_units() -> None:
    assert {unit.name for unit in UNITS} >= OWN_USER | {"penstock-agent.service"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    """'verify' tells of unknown keys and sections, and of programs that are not there."""
    copy = tmp_path / unit.name.replace("@", "@0")
    shutil.copy(unit, copy)
    copy.write_text(copy.read_text().replace("/opt/penstock/bin/penstock", "/bin/true"))
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copy],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_restarted_confined_and_configured_in_etc(unit: Path) -> None:
    text = unit.read_text()
    for line in ("Restart=always", "NoNewPrivileges=yes", "RestrictSUIDSGID=yes"):
        assert f"\n{line}\n" in text
    assert re.search(r"^EnvironmentFile=/etc/penstock/", text, re.M)
    assert re.search(r"^CapabilityBoundingSet=", text, re.M)
    assert re.search(r"^ProtectSystem=(full|strict)$", text, re.M)
    user = re.search(r"^User=(\w+)$", text, re.M)
    assert user is not None
    assert (user[1] == "penstock") == (unit.name in OWN_USER)
