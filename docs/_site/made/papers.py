"""The papers, by the short names that the code uses."""

import re

PAPERS = {
    "io-sets": (
        "F. Boito, G. Pallez, L. Teylo, N. Vidal, *IO-SETS: Simple and efficient approaches for "
        "I/O bandwidth management*, IEEE TPDS 34(10), 2023, doi:10.1109/TPDS.2023.3305028"
    ),
    "io-resources": (
        "A. Bandet, F. Boito, G. Pallez, *Scheduling distributed I/O resources in HPC systems*, "
        "hal-04394004, 2024"
    ),
    "forwarding": (
        "J. L. Bez, *Dynamic tuning and reconfiguration of the I/O forwarding layer in HPC "
        "platforms*, thesis, UFRGS, 2020"
    ),
    "packs": (
        "J. Carretero, E. Jeannot, G. Pallez, D. E. Singh, N. Vidal, *Mapping and scheduling HPC "
        "applications for optimizing I/O*, ICS, 2020"
    ),
    "write-models": (
        "B. Xie et al., *Interpreting write performance of supercomputer I/O systems with "
        "regression models*, 2021"
    ),
    "Benoit": (
        "A. Benoit, T. Herault, L. Perotin, Y. Robert, F. Vivien, *Revisiting I/O "
        "bandwidth-sharing strategies for HPC applications*, JPDC, 2024"
    ),
}
_REFERENCE = re.compile(r"(?:[Pp]aper|[Tt]hesis) ([a-z-]+)|(Benoit)")


def citations(text: str) -> list[str]:
    """Return the papers that a text names, as they are cited, each once."""
    names = [paper or author for paper, author in _REFERENCE.findall(text.replace("\n", " "))]
    return [f"{PAPERS[name]} (paper {name})" for name in dict.fromkeys(names) if name in PAPERS]
