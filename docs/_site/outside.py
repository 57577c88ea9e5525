"""What pages link to outside of docs: those files become pages of the site, too."""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {
    ".py": "python",
    ".json": "json",
    ".jsonl": "json",
    ".toml": "toml",
    ".yml": "yaml",
    ".sh": "sh",
    ".lua": "lua",
}
MAX_BYTES = 60_000
"""Bytes of a file that is shown whole; of longer ones the beginning is."""
_LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
_FENCED = re.compile(r"(^```.*?^```)", re.M | re.S)


class Outside:
    """The files outside of docs that pages link to, each with the page that stands for it."""

    def __init__(self) -> None:
        self.origins: dict[str, Path] = {}
        self._uris: dict[Path, str] = {ROOT / "README.md": "index.md"}

    def gather(self, pages: dict[str, str]) -> dict[str, str]:
        """Return the further pages that those given, and they among themselves, link to."""
        further: dict[str, str] = {}
        waiting = dict(pages)
        while waiting:
            uri, text = waiting.popitem()
            for target in self._targets(uri, text):
                if target in self._uris or target.is_relative_to(DOCS) or not target.is_file():
                    continue
                place = target.relative_to(ROOT).as_posix()
                new = f"files/{place}" if target.suffix == ".md" else f"files/{place}.md"
                self._uris[target], self.origins[new] = new, target
                further[new] = waiting[new] = _file_page(target, place)
        return further

    def led(self, uri: str, text: str) -> str:
        """Return a page's text with its links to files outside of docs leading to their pages."""

        def lead(link: re.Match[str]) -> str:
            before, target, anchor, after = link.groups()
            if "://" in target or target.startswith(("mailto:", "/")):
                return link[0]
            page_uri = self._uri(self._resolved(uri, target))
            if page_uri is None:
                return link[0]
            relative = posixpath.relpath(page_uri, posixpath.dirname(uri) or ".")
            return f"{before}{relative}{anchor or ''}{after}"

        return outside_code(text, lambda part: _LINK.sub(lead, part))

    def _targets(self, uri: str, text: str) -> list[Path]:
        prose = "".join(_FENCED.split(text)[::2])
        links = [target for _, target, _, _ in _LINK.findall(prose)]
        return [self._resolved(uri, t) for t in links if "://" not in t and not t.startswith("/")]

    def _resolved(self, uri: str, target: str) -> Path:
        origin = self.origins.get(uri, DOCS / uri)
        return Path(posixpath.normpath((origin.parent / target).as_posix()))

    def _uri(self, target: Path) -> str | None:
        if target in self._uris:
            return self._uris[target]
        if target.is_relative_to(DOCS):
            inside = target.relative_to(DOCS).as_posix()
            return inside if target.suffix else f"{inside}/index.md"
        return None


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return Markdown with a change made to all of it but blocks of code."""
    parts = _FENCED.split(text)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def _file_page(file: Path, place: str) -> str:
    if file.suffix == ".md":
        return file.read_text()
    text = file.read_text()
    note = "" if len(text) <= MAX_BYTES else f"\n\nThe first {MAX_BYTES:,} bytes:"
    language = LANGUAGES.get(file.suffix, "text")
    return f"# {place}{note}\n\n```{language}\n{text[:MAX_BYTES].rstrip()}\n```\n"
