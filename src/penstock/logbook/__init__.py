"""The record of a live day: every event, and the actions that it led to.

A record is a text of JSON Lines: a header, then one line an event (docs/record-files.md). It is
written while a controller runs, read back one line at a time, and replayed through a fresh Manager,
which must come to the same actions.
"""

from penstock.logbook.header import Chosen, Header
from penstock.logbook.lines import Entry
from penstock.logbook.reader import Logbook
from penstock.logbook.replay import Difference, Replayed, replay
from penstock.logbook.retention import Retention
from penstock.logbook.writer import LogbookWriter

__all__ = [
    "Chosen",
    "Difference",
    "Entry",
    "Header",
    "Logbook",
    "LogbookWriter",
    "Replayed",
    "Retention",
    "replay",
]
