"""The systemd units are what systemd takes, and have what a site expects of daemons."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SHIPPED = Path(__file__).parents[2] / "deploy/systemd"
UNITS = sorted(SHIPPED.glob("*.service"))
OWN_USER = {"penstock-controller.service", "penstock-ionode@.service"}


def test_there_are_units() -> None:
    assert {unit.name for unit in UNITS} >= OWN_USER | {"penstock-agent.service"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    """'verify' tells of unknown keys and sections, and of programs that are not there."""
    copy = tmp_path / unit.name.replace("@", "@0")
    shutil.copy(unit, copy)
    copy.write_text(copy.read_text().replace("/opt/penstock/bin/penstock", "/bin/true"))
    if (more := SHIPPED / f"{unit.name}.d").exists():
        shutil.copytree(more, tmp_path / more.name)
    assert verified(copy) == ""


def verified(unit: Path) -> str:
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result.stderr or ("" if result.returncode == 0 else f"exit status {result.returncode}")


def test_a_drop_in_is_looked_at_too(tmp_path: Path) -> None:
    """Else the test above would say nothing of it."""
    unit = tmp_path / "some.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    assert verified(unit) == ""
    (tmp_path / "some.service.d").mkdir()
    (tmp_path / "some.service.d" / "all-users.conf").write_text("[Service]\nUsr=root\n")
    assert "Usr" in verified(unit)


def test_a_site_begins_with_what_serves_every_user() -> None:
    """I/O nodes that served one user alone would leave all others' data direct, as fail-opens."""
    unit = (SHIPPED / "penstock-controller.service").read_text()
    assert "\nUser=penstock\n" in unit
    assert "\nCapabilityBoundingSet=\n" in unit
    settings = (SHIPPED / "controller.env").read_text()
    (options,) = re.findall(r"^PENSTOCK_UP=(.*)$", settings, re.M)
    assert "--io-nodes 0" in options or "--all-users" in options


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
