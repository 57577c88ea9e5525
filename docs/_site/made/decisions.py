"""The list of decisions, by the files that there are."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "decisions"


def pages() -> dict[str, str]:
    """Return the list."""
    lines = [f"- [{title(file)}]({file.name})" for file in sorted(FOLDER.glob("[0-9]*.md"))]
    intro = "# Decisions\n\nChoices of design, with alternatives and reasons."
    return {"decisions/index.md": f"{intro}\n\n" + "\n".join(lines) + "\n"}


def title(file: Path) -> str:
    """Return a page's title."""
    return file.read_text().split("\n", 1)[0].removeprefix("# ")
