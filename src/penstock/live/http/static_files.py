"""The dashboard's own files: a page, its looks and its scripts, as they are in the package.

They hold no data, so anybody may have them. Nothing from elsewhere is loaded, and no script that is
not one of these files runs: a job's name cannot become one.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from penstock.live.http.faults import NotFoundError

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
    "cache-control": "no-cache",  # asked for each time, sent when it is another
}


@dataclass(slots=True)
class _File:
    path: Path
    stamp: tuple[int, int] = (0, 0)
    content: bytes = b""
    tag: str = ""

    def fresh(self) -> "_File":
        """Read it again if it has changed: who writes the page sees it at once."""
        found = self.path.stat()
        if (stamp := (found.st_mtime_ns, found.st_size)) != self.stamp:
            self.content, self.stamp = self.path.read_bytes(), stamp
            self.tag = f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'
        return self


class PageFiles:
    """The files that there are when it is made, and no others."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {
            path.name: _File(path)
            for path in sorted(folder.iterdir())
            if path.is_file() and path.suffix in TYPES and not path.name.startswith(".")
        }

    def answer(self, name: str, request: Request) -> Response:
        """Return a file, or word that who asks has it; NotFoundError: there is none."""
        if name not in self._files:
            raise NotFoundError(f"the dashboard has no file {name[:80]!r}")
        file = self._files[name].fresh()
        headers = HEADERS | {"etag": file.tag}
        had = request.headers.get("if-none-match", "").split(",")
        known = {tag.strip().removeprefix("W/") for tag in had}
        if file.tag in known:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=TYPES[file.path.suffix])
