"""The record of a live site: every event, and the actions that it led to.

A record is JSON Lines: a header, then one line per event (docs/formats/record-files.md). A
controller writes it; what-if reads it; a replay through a new Manager must give the same actions.
"""

from penstock.records.lines import ENFORCE, Entry, Header, PolicySpec
from penstock.records.reader import Gap, Record
from penstock.records.replay import Difference, ReplayResult, replay
from penstock.records.writer import RecordWriter, Retention

__all__ = [
    "ENFORCE",
    "Difference",
    "Entry",
    "Gap",
    "Header",
    "PolicySpec",
    "Record",
    "RecordWriter",
    "ReplayResult",
    "Retention",
    "replay",
]
