"""Pages of the site that are made from the code when it is built: they cannot be behind it."""

from made import configuration, decisions, metrics, policies, prometheus, verbs


def pages() -> dict[str, str]:
    """Return every made page: its path below docs, and its text."""
    found: dict[str, str] = {}
    for room in (policies, metrics, prometheus, verbs, configuration, decisions):
        found |= room.pages()
    return found
