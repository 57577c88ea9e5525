"""The dashboard's own files: a page, its style sheets and its scripts, as in the package.

They hold no data, so anybody may read them. Nothing is loaded from elsewhere, and no script runs
that is not one of these files: a job's name cannot become one.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from penstock.live.http.dispatch import NotFoundError

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "form-action 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",  # validated each time, sent only when it changed
}


@dataclass(slots=True)
class _File:
    path: Path
    stamp: tuple[int, int] = (0, 0)
    content: bytes = b""
    tag: str = ""

    def refresh(self) -> "_File":
        """Read the file again if it has changed, so that edits of the page show at once."""
        status = self.path.stat()
        if (stamp := (status.st_mtime_ns, status.st_size)) != self.stamp:
            self.content, self.stamp = self.path.read_bytes(), stamp
            self.tag = f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'
        return self


class PageFiles:
    """The files that exist when it is constructed, and no others."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {
            path.name: _File(path)
            for path in sorted(folder.iterdir())
            if path.is_file() and path.suffix in TYPES and not path.name.startswith(".")
        }

    @property
    def names(self) -> list[str]:
        """The names of the files, sorted."""
        return list(self._files)

    def answer(self, name: str, request: Request) -> Response:
        """Return a file, or status 304 if the client has it; NotFoundError: no such file."""
        if name not in self._files:
            raise NotFoundError(f"the dashboard has no file {name[:80]!r}")
        file = self._files[name].refresh()
        headers = HEADERS | {"etag": file.tag}
        cached = request.headers.get("if-none-match", "").split(",")
        if file.tag in {tag.strip().removeprefix("W/") for tag in cached}:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=TYPES[file.path.suffix])
