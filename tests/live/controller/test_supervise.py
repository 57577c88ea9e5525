"""Work that never ends: a fault in it is logged, and it goes on."""

import asyncio
import logging

import pytest

from penstock.live.controller import supervise
from penstock.live.controller.supervise import run_forever


def test_what_raises_is_logged_and_begun_anew_ever_more_slowly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without beats all gates would open, and nobody would know why."""
    monkeypatch.setattr(supervise, "AGAIN_AFTER", 0.001)
    monkeypatch.setattr(supervise, "SLOWEST", 0.004)
    waits: list[float] = []
    sleep = asyncio.sleep

    async def slept(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", slept)
    monkeypatch.setattr(supervise.time, "monotonic", lambda: 0.0)

    async def run() -> None:
        lives, well = 0, asyncio.Event()

        async def work() -> None:
            nonlocal lives
            lives += 1
            if lives == 2:
                return
            if lives < 5:
                raise RuntimeError(f"fault {lives}")
            well.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(run_forever(work, "keeping"))
        await asyncio.wait_for(well.wait(), 10.0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert waits == [0.001, 0.002, 0.004, 0.004]
    assert caplog.text.count("keeping has failed; it begins anew") == 3
    assert caplog.text.count("keeping has ended") == 1
    assert "fault 3" in caplog.text
