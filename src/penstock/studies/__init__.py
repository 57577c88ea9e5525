"""Each paper's evaluation, and ours beyond it: scenarios as data, run as campaigns."""

import importlib
from collections.abc import Mapping, Sequence

from penstock.errors import unknown
from penstock.studies.study import Study

STUDIES: Mapping[str, str] = {
    "demo": "penstock.studies.demo:STUDY",
    "detection": "penstock.studies.detection:STUDY",
    "forwarding-policies": "penstock.studies.forwarding_policies:STUDY",
    "io-resources": "penstock.studies.io_resources:STUDY",
    "io-sets": "penstock.studies.io_sets:STUDY",
    "live-forwarding": "penstock.studies.live.forwarding:STUDY",
    "live-io-resources": "penstock.studies.live.io_resources:STUDY",
    "live-io-sets": "penstock.studies.live.io_sets:STUDY",
    "live-packs": "penstock.studies.live.packs:STUDY",
    "packs": "penstock.studies.packs:STUDY",
    "sharing-policies": "penstock.studies.sharing_policies:STUDY",
    "tuning": "penstock.studies.tuning:STUDY",
    "write-models": "penstock.studies.write_models:STUDY",
}

IN_ORDER: Sequence[str] = (
    "sharing-policies",
    "io-sets",
    "io-resources",
    "forwarding-policies",
    "packs",
    "write-models",
    "detection",
    "tuning",
    "live-io-sets",
    "live-packs",
    "live-forwarding",
    "live-io-resources",
    "demo",
)
"""All of them as they are run together: those that simulate, then those that run real processes,
which measure time and have the machine to themselves."""


def load(name: str) -> Study:
    """Return the study of that name."""
    if name not in STUDIES:
        raise unknown("study", name, STUDIES)
    module, _, attribute = STUDIES[name].partition(":")
    study: Study = getattr(importlib.import_module(module), attribute)
    return study
