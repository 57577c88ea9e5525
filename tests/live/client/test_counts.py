"""Calls of more than the kernel moves at once return at once what they return plainly."""

import pytest
from live.client.set_ups import SET_UPS, Compiled, set_up

STRIPE = 65536


@pytest.mark.parametrize("stripe", [0, STRIPE])
@pytest.mark.parametrize("name", SET_UPS)
def test_absurd_counts_are_the_kernels_to_judge(name: str, compiled: Compiled, stripe: int) -> None:
    """Over stripes, the parts of a call of 2^62 bytes were counted one by one."""
    program = compiled("counts.c", "-w")
    with set_up(name) as job:
        if stripe and job.nodes:
            places = [job.nodes[0].remote if name.startswith("carried") else job.nodes[0].node]
            job.pages.assign(places, stripe=stripe)
        assert job.run(program).stdout == job.run(program, managed=False).stdout
        if job.nodes:
            assert job.pages.total("forwarded_writes") > 0
