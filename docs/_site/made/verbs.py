"""The reference of the command line: one page per verb, from its `--help`."""

from made.text import escaped, fenced, table
from penstock.cli.common.manual import Page
from penstock.cli.common.manual import pages as described


def pages() -> dict[str, str]:
    """Return a page for every verb, those below others included, and their list."""
    all_pages = list(described())
    return {f"reference/verbs/{_file(page)}": _page(page) for page in all_pages}


def _file(page: Page) -> str:
    return "index.md" if len(page.path) == 1 else f"{'-'.join(page.path[1:])}.md"


def _page(page: Page) -> str:
    title = "The command line" if len(page.path) == 1 else page.command
    lines = [f"# {title}", fenced(page.synopsis, "text")]
    for paragraph in page.paragraphs:
        text = paragraph.text
        lines.append(fenced(text, "text") if paragraph.preformatted else escaped(text))
    if page.verbs:
        rows = [(f"[`{verb}`]({_below(page, verb)})", escaped(text)) for verb, text in page.verbs]
        lines += ["## Verbs", table(("verb", "what it does"), rows)]
    if page.examples:
        examples = [f"# {e.note}\n{e.command}" if e.note else e.command for e in page.examples]
        lines += ["## Examples", fenced("\n".join(examples), "bash")]
    options = [(f"`{names}`", escaped(text)) for names, text in page.options]
    lines += ["## Options", table(("option", "what it does"), options)]
    if len(page.path) == 1:
        lines.append(
            "`penstock man` makes manual pages of the same texts. Exit statuses: 0, success; "
            "1, a run failed; 2, the input is wrong; 130, interrupted."
        )
    return "\n\n".join(lines) + "\n"


def _below(page: Page, verb: str) -> str:
    return f"{'-'.join((*page.path[1:], verb))}.md"
