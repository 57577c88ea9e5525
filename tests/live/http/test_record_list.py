"""Records are listed to several at once: the dashboards of a site ask when they like."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.live.http import record_list
from penstock.live.http.record_list import Records


def test_several_who_ask_at_once_get_the_same_and_read_each_header_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(5):
        path = tmp_path / f"record-20261115-12000{k}-ab{k}-0001.jsonl"
        path.write_text(json.dumps({"epoch": 1e9, "began": k, "sharing": {"policy": "set-10"}}))
    read: list[str] = []
    original = record_list._header

    def slowly(path: Path) -> record_list._Header:
        read.append(path.name)
        threading.Event().wait(0.02)  # time enough for the others to come
        return original(path)

    monkeypatch.setattr(record_list, "_header", slowly)
    kept = Records(tmp_path, "ab4")
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(kept.listed) for _ in range(4)]
        first, *others = [one.result() for one in asked]
    assert [run.run for run in first] == ["ab4", "ab3", "ab2", "ab1", "ab0"]
    assert all(other == first for other in others)
    assert len(read) == 5
