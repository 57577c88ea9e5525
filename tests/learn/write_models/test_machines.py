"""Machines in files: what cannot be is refused in a line, before anything is predicted of it."""

import pytest

from penstock.errors import InputError
from penstock.learn.write_models.machine import parse

STAGES = """
[[stage]]
name = "node"
kind = "node"
bandwidth = "1 GB/s"

[[stage]]
name = "OST"
kind = "target"
symbol = "ost"
bandwidth = "500 MB/s"
"""
HEAD = 'name = "x"\nnodes = 4\ncores = 2\nstriping = {targets = 2, servers = 1, size = "1 MiB"}\n'


def test_the_machine_that_is_changed_below_can_be() -> None:
    assert parse((HEAD + STAGES).encode(), "x.toml").name == "x"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ((HEAD + STAGES.replace("OST", "Größe")).encode("latin-1"), "is not UTF-8 text"),
        ((HEAD + STAGES.replace('"OST"', '"node"')).encode(), "two stages have the name 'node'"),
        ((HEAD + STAGES + 'of-a-burst = "ost"\n').encode(), "symbol 'ost' is given twice"),
        ((HEAD + STAGES + 'of-a-burst = "sub"\n').encode(), "symbol 'sub' means subblocks"),
        ((HEAD + STAGES.replace('"ost"', '"sub"')).encode(), "symbol 'sub' means subblocks"),
        ((HEAD + 'cross = [["n*K", "s_r*n*K"]]\n' + STAGES).encode(), r"feature of x's cross"),
        ((HEAD + 'cross = [["n*K", "1/n"]]\n' + STAGES).encode(), "multiplies an inverse"),
        (
            (HEAD + STAGES + '[[stage]]\nname = "ends"\nkind = "subblocks"\n').encode(),
            "stage 'ends' needs striping.subblocks",
        ),
        (
            (HEAD + STAGES + '[[stage]]\nname="m"\nkind="metadata"\nrate=1e-320\n').encode(),
            "rate",
        ),
        ((HEAD + STAGES.replace("500 MB/s", "1e-300 B/s")).encode(), "bandwidth of stage 'OST'"),
        ((HEAD.replace("1 MiB", "1e300") + STAGES).encode(), "striping.size"),
        *(
            ((HEAD + STAGES + f"[interference]\n{name} = {value}\n").encode(), name)
            for name in ("stalls", "pieces", "lasts", "stall", "tail", "overlap")
            for value in ("inf", "nan", "1e12")
        ),
    ],
)
def test_what_cannot_be_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        parse(content, "x.toml")
    assert str(error.value).startswith("x.toml")
    assert "\n" not in str(error.value)
