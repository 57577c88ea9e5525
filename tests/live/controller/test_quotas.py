"""One user, or one host, cannot take all of the controller's descriptors."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from live.controller.turn_deployment import WAIT, Deployed

from penstock.errors import InputError
from penstock.live.controller.peer import Peer, Quotas
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection, FullError
from penstock.live.protocol.users import name_of

ME = name_of(os.geteuid())


def begin(controller: ControlConnection, user: str = ME) -> messages.JobAccepted:
    request = messages.BeginJob(name="job", pid=os.getpid(), command=["job"], user=user)
    return controller.ask(request, messages.JobAccepted)


def test_a_host_has_half_of_all_places_and_others_the_rest() -> None:
    places = Quotas(descriptors=16)
    one, other, local = Peer(address="a"), Peer(address="b"), Peer(uid=0)
    for _ in range(6):
        places.enter(one)
    with pytest.raises(FullError, match="host a has 6 connections"):
        places.enter(one)
    for _ in range(5):
        places.enter(other)
    places.enter(local)
    with pytest.raises(FullError, match="has 12 connections, the most it can have"):
        places.enter(local)
    places.leave(one, None)
    places.enter(local)


def test_a_user_has_half_of_all_jobs_unless_the_deployment_is_its_own() -> None:
    places = Quotas(descriptors=16)
    for _ in range(6):
        places.begin("eve")
    with pytest.raises(FullError, match=r"user eve has 6 jobs here.*live\.user-jobs"):
        places.begin("eve")
    for _ in range(12):
        places.begin(ME)
    places.enter(Peer(address="a"))
    places.leave(Peer(address="a"), "eve")
    places.begin("eve")


def test_a_job_too_many_runs_unmanaged_and_is_counted(site: Deployed) -> None:
    """Its command is not refused: what is managed serves speed only."""
    site.up("--set", "live.user-jobs=1")
    first = site.obedient("first")
    second = site.run("second", "sh", "-c", "echo done")
    out, err = second.communicate(timeout=WAIT)
    assert (second.returncode, out) == (0, "done\n")
    assert "as many as one user may have (live.user-jobs); running the command unmanaged" in err
    assert [job.name for job in site.status().jobs] == ["first"]
    assert site.status().refused == 1
    first.finish()
    third = site.run("third", sys.executable, "-c", "")
    assert third.wait(WAIT) == 0
    assert site.job("third").state == "ended"


def test_a_flood_of_connections_is_refused_and_jobs_go_on(site: Deployed) -> None:
    """Of 128 descriptors 96 are for connections; who comes after that is told so."""
    limited = f'ulimit -n 128; exec {sys.executable} -m penstock.cli "$@"'
    up = ("up", "--root", str(site.root), "--io-nodes", "1", "--state", str(site.state.folder))
    subprocess.run(["sh", "-c", limited, "sh", *up], check=True, timeout=WAIT, capture_output=True)
    job = site.obedient("job")
    with ExitStack() as flood:
        for _ in range(120):
            flood.enter_context(ControlConnection(site.state.controller))
        with (
            ControlConnection(site.state.controller) as late,
            pytest.raises(FullError, match="the most it can have"),
        ):
            begin(late)
        job.do("write 4")
    until = time.monotonic() + WAIT
    while not (status := _status(site)):
        assert time.monotonic() < until
    assert status.refused >= 25
    assert job.finish()["status"] == 0


def _status(site: Deployed) -> messages.Status | None:
    """Return how things are; None: there is no room yet to ask."""
    try:
        return launcher.ask(site.state, messages.GetStatus(), messages.Status)
    except InputError:
        return None
