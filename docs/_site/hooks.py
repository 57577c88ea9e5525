"""Hooks of MkDocs: pages made from the code, their place in the navigation, links."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import made  # noqa: E402 - a room beside this file
from made import choose, decisions, metrics, policies  # noqa: E402
from outside import DOCS, Outside, outside_code  # noqa: E402

_LIST_AFTER_TEXT = re.compile(r"^((?![-*#|>\s]|\d+\. ).+\n)(?=(?:- |\d+\. )\S)", re.M)
_TABLE = re.compile(r"^<!-- made: (\w+) -->$", re.M)
_EMPTY = "made"
"""A place of the nav that is filled with made pages."""
site: dict[str, Any] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the pages, and give each its place in the nav."""
    written = {
        file.relative_to(DOCS).as_posix(): file.read_text()
        for file in sorted(DOCS.rglob("*.md"))
        if not file.is_relative_to(HERE)
    }
    pages = made.pages()
    outside = Outside()
    files = outside.gather(written | pages)
    site.update(pages=pages | files, outside=outside)
    rooms = {
        "policies": [
            {
                kind.capitalize(): sorted(
                    u for u in pages if u.startswith(f"reference/policies/{kind}/")
                )
            }
            for kind in policies.KINDS
        ],
        "metrics": sorted(u for u in metrics.pages()),
        "prometheus": sorted(u for u in pages if u.startswith("reference/metrics/penstock_")),
        "verbs": sorted(
            u for u in pages if u.startswith("reference/verbs/") and not u.endswith("index.md")
        ),
        "decisions": [f"decisions/{f.name}" for f in sorted(decisions.FOLDER.glob("[0-9]*.md"))],
        "files": sorted(files),
    }
    config.nav = _filled(config.nav or [], rooms)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the made pages to those that are written."""
    for uri, text in site["pages"].items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Resolve links to files outside of docs, and read lists as other Markdown parsers do."""
    markdown = _TABLE.sub(lambda place: choose.tables()[place[1]], markdown)
    led: str = site["outside"].led(page.file.src_uri, markdown)
    # A list right below a line of text is one; Python-Markdown wants an empty line between.
    return outside_code(led, lambda part: _LIST_AFTER_TEXT.sub(r"\1\n", part))


def _filled(nav: list[Any], rooms: dict[str, list[Any]]) -> list[Any]:
    """Return the nav with made pages in their places."""
    entries: list[Any] = []
    for entry in nav:
        if not isinstance(entry, dict):
            entries.append(entry)
            continue
        ((title, value),) = entry.items()
        if title == _EMPTY:
            entries += rooms[value]
        elif isinstance(value, list):
            entries.append({title: _filled(value, rooms)})
        else:
            entries.append(entry)
    return entries
