"""Several dashboards may list the records of a site at the same time."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.live.http.what_if_choices import Header, RecordList, read_header


def test_requests_at_once_get_the_same_list_and_read_each_header_once(
    tmp_path: Path,
) -> None:
    for k in range(5):
        path = tmp_path / f"record-20261115-12000{k}-ab{k}-0001.jsonl"
        path.write_text(json.dumps({"epoch": 1e9, "began": k, "sharing": {"policy": "set-10"}}))
    read: list[str] = []

    def slowly(path: Path) -> Header:
        read.append(path.name)
        threading.Event().wait(0.02)  # time enough for the others to come
        return read_header(path)

    records = RecordList(tmp_path, "ab4", read=slowly)
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(records.runs) for _ in range(4)]
        first, *others = [answer.result() for answer in answers]
    assert [run.run for run in first] == ["ab4", "ab3", "ab2", "ab1", "ab0"]
    assert all(other == first for other in others)
    assert len(read) == 5
