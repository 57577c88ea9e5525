"""Work that never ends: a fault in it is logged, and it goes on."""

import asyncio
import logging

import pytest

from penstock.live.controller.supervise import Steps, run_forever


def test_work_that_fails_is_logged_and_restarted_ever_more_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without heartbeats all gates would open, and the log would not say why."""
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)
        await asyncio.sleep(0)

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

        task = asyncio.create_task(
            run_forever(
                work,
                "keeping",
                first_delay=0.001,
                longest_delay=0.004,
                sleep=sleep,
                clock=lambda: 0.0,
            )
        )
        await asyncio.wait_for(well.wait(), 10.0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert delays == [0.001, 0.002, 0.004, 0.004]
    assert caplog.text.count("keeping has failed; restarting it") == 3
    assert caplog.text.count("keeping has ended") == 1
    assert "fault 3" in caplog.text


def test_long_work_pauses_when_a_step_has_taken_its_time() -> None:
    async def run() -> list[int]:
        now, others, pauses = 0.0, 0, []

        async def other() -> None:
            nonlocal others
            while True:
                others += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        steps = Steps(2.0, clock=lambda: now)
        for _ in range(6):
            now += 1.0
            await steps.pause()
            pauses.append(others)
        task.cancel()
        return pauses

    assert asyncio.run(run()) == [0, 1, 1, 2, 2, 3]
