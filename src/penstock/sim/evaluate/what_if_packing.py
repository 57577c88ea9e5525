"""The jobs of a record in packs: what packers would have made of the same jobs, all at hand.

A packer knows its jobs beforehand, so they are all ready when the record begins; when each was
submitted, a record does not know. So packers compare with each other, and not with what ran.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from penstock.campaign.policy_file import policy_errors
from penstock.errors import InputError
from penstock.model import Site
from penstock.policies.base import Packer, Sharing
from penstock.sim.evaluate import packs
from penstock.sim.evaluate.packs import PackMetrics
from penstock.sim.formats.from_record import Recording
from penstock.sim.workload import Workload


def pack(
    recording: Recording, packers: Mapping[str, Packer], sharing: Sharing, site: Site
) -> dict[str, PackMetrics]:
    """Pack the jobs of a record with each packer, and run them under a sharing policy."""
    if not site.nodes:
        raise InputError(
            "--packing needs the number of compute nodes, which the record does not have; "
            "give --set site.nodes=N"
        )
    workload = recording.workload
    # Lengths are those on the file system as it was: no curve gives them for one I/O node.
    jobs = Workload(
        ids=workload.ids,
        compute=workload.compute,
        io=workload.io,
        offsets=workload.offsets,
        release=np.zeros(len(workload)),
        nodes=workload.nodes,
        max_share=workload.max_share,
        details=workload.details,
    )
    site = replace(site, bandwidth=None)
    measured = {}
    for name, packer in packers.items():
        with policy_errors(name):
            measured[name] = packs.measure(packs.run(jobs, packer, sharing, site))
    return measured
