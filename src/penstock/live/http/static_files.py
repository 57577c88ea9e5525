"""The dashboard's own files: a page, its style sheets and its scripts, as in the package.

They hold no data, so anybody may read them. Nothing is loaded from elsewhere, and no script runs
that is not one of these files: a job's name cannot become one.
"""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from penstock.live.http.dispatch import NotFoundError
from penstock.live.http.openapi import operation

FOLDER = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "form-action 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",  # validated each time, sent only when it changed
}
_MEDIA = tuple(media.partition(";")[0] for media in TYPES.values())


class PageApi:
    """The operations that return the files of a folder: those that exist when it is constructed."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._paths = {
            path.name: path
            for path in folder.iterdir()
            if path.is_file() and path.suffix in TYPES and not path.name.startswith(".")
        }

    @operation("GET", "/", access="open", media=("text/html",))
    async def page(self, _: None, request: Request) -> Response:
        """The dashboard."""
        return await self.asset(None, "index.html", request)

    @operation("GET", "/assets/{name}", access="open", fails=(404,), media=_MEDIA)
    async def asset(self, _: None, name: str, request: Request) -> Response:
        """A file of the dashboard."""
        if (path := self._paths.get(name)) is None:
            raise NotFoundError(f"the dashboard has no file {name[:80]!r}")
        content = path.read_bytes()  # again each time, so that edits of the page show at once
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = HEADERS | {"etag": tag}
        cached = request.headers.get("if-none-match", "").split(",")
        if tag in {one.strip().removeprefix("W/") for one in cached}:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=TYPES[path.suffix])
