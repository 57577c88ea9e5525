"""The record of a live day: every event, and the actions that it led to.

A record is a text of JSON Lines: a header, then one line an event (docs/formats/record-files.md).
It is written while a controller runs, read back one line at a time, and replayed through a fresh
Manager, which must come to the same actions.
"""

from penstock.records.header import Chosen, Header
from penstock.records.lines import Entry
from penstock.records.reader import Record
from penstock.records.replay import Difference, Replayed, replay
from penstock.records.retention import Retention
from penstock.records.writer import RecordWriter

__all__ = [
    "Chosen",
    "Difference",
    "Entry",
    "Header",
    "Record",
    "RecordWriter",
    "Replayed",
    "Retention",
    "replay",
]
