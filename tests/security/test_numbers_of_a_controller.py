"""A controller in other hands says numbers and names that cannot be: the command runs anyway."""

from typing import Any

import pytest
from security.test_between_hosts import Site, posing, site

from penstock.live.protocol.site_key import SiteKey

__all__ = ["site"]
pytestmark = pytest.mark.security


@pytest.mark.parametrize(
    "fields",
    [{"stripe": -1}, {"stripe": 1 << 64}, {"roots": ["/dev\0/shm"]}, {"job": "a\0name"}],
    ids=["negative stripe", "large stripe", "root with a zero", "name with a zero"],
)
def test_a_command_runs_whatever_numbers_a_controller_says(
    site: Site, fields: dict[str, Any]
) -> None:
    fields = {"roots": [str(site.folder)]} | fields
    with posing(SiteKey.read(site.key), **fields) as controller:
        result = site.run(controller.port, "sh", "-c", "echo ran; exit 3")
    assert (result.returncode, result.stdout) == (3, "ran\n")
    assert "Traceback" not in result.stderr
