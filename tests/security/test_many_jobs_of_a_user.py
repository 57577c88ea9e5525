"""Names that the controller gave out cost nothing: a user has as many jobs as it likes."""

from contextlib import ExitStack

import pytest
from live.conftest import folder, serve
from live.ionode.permissions import Caller
from live.ionode.real_node import Serve
from live.other_users import AS_ROOT, NOBODY
from security.test_ionode_bounds import MIB, all_users, other_user, serve_one

from penstock.live.protocol import messages

__all__ = ["folder", "serve"]
pytestmark = [pytest.mark.security, AS_ROOT]
MANY = 20


def test_users_share_before_their_jobs_do(serve: Serve) -> None:
    """Twenty idle `penstock run` of one user took twenty parts of an I/O node, and another's job
    one."""
    node = all_users(serve, "--depth", "1")
    names = [b"many.%d" % k for k in range(MANY)]
    weights = {f"0/{name.decode()}": 1.0 for name in names} | {f"{NOBODY}/named": 1.0}
    assert node.ask(messages.SetWeights(weights=weights)) == messages.Done()
    with ExitStack() as stack:
        holder = stack.enter_context(Caller(node.socket, job=names[0]))
        holder.ask(1)
        holder.set_in_call(holder.number)
        hostile = [stack.enter_context(Caller(node.socket, job=name)) for name in names]
        honest = [stack.enter_context(other_user(node)) for _ in range(MANY)]
        for caller in (*hostile, *honest):
            caller.request(MIB)
        node.until(lambda now: now.queued == len(hostile) + len(honest))
        holder.set_in_call(0)
        holder.give_back()
        served = [serve_one(hostile, honest) for _ in range(MANY)]
        assert 8 <= served.count("honest") <= 12, served
