"""The dashboard's files: those of the package only, with a strict content security policy."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from live.http.api_site import FakeService, client, served, token_file
from starlette.requests import Request

from penstock.live.http.api import Api
from penstock.live.http.dispatch import NotFoundError
from penstock.live.http.static_files import FOLDER, TYPES, PageApi
from penstock.live.protocol.tokens import Tokens


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client without a token, of an API that has some."""
    tokens = Tokens.read(token_file(tmp_path_factory.mktemp("tokens")))
    with served(Api(FakeService(), tokens=tokens)) as where, client(where) as api:
        yield api


@pytest.mark.security
def test_the_page_is_for_anybody_and_has_no_data(site: httpx.Client) -> None:
    page = site.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert site.get("/v1/timeline").status_code == 401


def test_every_file_is_served_as_what_it_is(site: httpx.Client) -> None:
    names = [path.name for path in FOLDER.iterdir() if path.suffix in TYPES]
    assert "index.html" in names
    for name in names:
        answer = site.get(f"/assets/{name}")
        assert answer.content == (FOLDER / name).read_bytes()
        assert answer.headers["content-type"] == TYPES[Path(name).suffix]
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_needs_nothing_from_elsewhere_and_no_inline_script(site: httpx.Client) -> None:
    """A browser would refuse it; this test needs none."""
    page = site.get("/").text
    assert re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page) == []
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page) == []
    for used in re.findall(r"""(?:src|href)="(/[^"#]*)\"""", page):
        assert site.get(used).status_code == 200, used


def test_a_cached_file_is_not_sent_again(site: httpx.Client) -> None:
    first = site.get("/")
    tag = first.headers["etag"]
    again = site.get("/", headers={"if-none-match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert site.get("/", headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.security
@pytest.mark.parametrize(
    "name",
    ["..%2Fapi.py", "%2Fetc%2Fpasswd", "api.py", "%2e%2e", ".a.js", "%00.js", "a" * 300 + ".js"],
)
def test_nothing_else_is_served(site: httpx.Client, name: str) -> None:
    assert site.get(f"/assets/{name}").status_code == 404
    assert site.get("/assets/").status_code == 404


def test_other_files_are_left_out(tmp_path: Path) -> None:
    for name in ("index.html", "a.js", ".hidden.js", "notes.txt", "b.py"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder.js").mkdir()
    page = PageApi(tmp_path)
    request = Request({"type": "http", "headers": []})

    def is_served(name: str) -> bool:
        try:
            return asyncio.run(page.asset(None, name, request)).status_code == 200
        except NotFoundError:
            return False

    names = [*(path.name for path in tmp_path.iterdir()), "..", "missing.js"]
    assert sorted(filter(is_served, names)) == ["a.js", "index.html"]
