"""Table I of paper write-models, by hand: what a write puts on the stages of both machines."""

import pytest

from penstock.errors import InputError
from penstock.learn.write_models.machine import Machine, load
from penstock.learn.write_models.parameters import busiest, check, parameters
from penstock.model.write import Write

CETUS, TITAN = load("cetus"), load("titan")
MIB = 2**20


@pytest.mark.parametrize(
    ("symbol", "value"),
    [
        ("m", 200),
        ("n", 2),
        ("K", 20 * MIB),
        ("s_b", 64),  # 64 nodes behind a bridge node, and 200 = 3 * 64 + 8
        ("n_b", 4),
        ("s_l", 64),
        ("n_l", 4),
        ("s_io", 128),  # 200 = 128 + 72
        ("n_io", 2),
        ("n_sub", 16),  # 20 MiB are two blocks of 8 and 4 MiB, of which a 32nd of 8 MiB are 16
        ("n_d", 3),  # three blocks, each on its own NSD
        ("n_s", 3),  # neighbours are on different servers
        ("n_nsd", 336 - 336 * (333 / 336) ** 400),  # each burst draws three of 336
        ("n_nsds", 48 - 48 * (45 / 48) ** 400),
    ],
)
def test_cetus(symbol: str, value: float) -> None:
    values = parameters(CETUS, Write(nodes=200, cores=2, burst=20 * MIB))
    assert values[symbol] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("symbol", "value"),
    [
        ("m", 2),
        ("n", 1),
        ("K", 10 * MIB),
        ("s_r", 2),  # 109 nodes behind a router
        ("n_r", 1),
        ("n_ost", 1008 - 1004**2 / 1008),  # two files draw four of 1,008
        ("n_oss", 144 - 140**2 / 144),
        ("s_ost", 3 * MIB),  # ten blocks over four: three, three, two, two
        ("s_oss", 3 * MIB),
    ],
)
def test_titan(symbol: str, value: float) -> None:
    values = parameters(TITAN, Write(nodes=2, cores=1, burst=10 * MIB))
    assert values[symbol] == pytest.approx(value, rel=1e-9)


def test_nodes_that_lie_apart_load_components_less() -> None:
    """109 compute nodes behind a router: two on the first, one on the third."""
    values = parameters(TITAN, Write(nodes=3, cores=1, burst=MIB, placement=(0, 108, 218)))
    assert (values["s_r"], values["n_r"]) == (2, 2)


@pytest.mark.parametrize(
    ("mib", "stripes", "size", "most"),
    [
        (20, 16, 1, 2),  # four of the sixteen have a second block
        (65, 4, 64, 64),  # a whole block, and a MiB elsewhere
        (1.2, 4, 1, 1),
        (0.5, 4, 1, 0.5),
        (8.5, 4, 1, 2.5),  # the ninth block is a half
        (8, 4, 1, 2),
    ],
)
def test_the_busiest_target_has_whole_blocks(
    mib: float, stripes: int, size: int, most: float
) -> None:
    """Bytes over targets is not what the busiest has: 20 MiB over 16 is 1.25."""
    write = Write(
        nodes=1, cores=1, burst=mib * MIB, stripe_count=stripes, stripe_size=float(size * MIB)
    )
    assert parameters(TITAN, write)["s_ost"] == pytest.approx(most * MIB)


def test_a_server_has_several_targets_of_a_wide_file() -> None:
    """290 targets over 144 servers: two servers have three, at a block each."""
    write = Write(nodes=1, cores=1, burst=290.0 * MIB, stripe_count=290)
    values = parameters(TITAN, write)
    assert values["s_oss"] == pytest.approx(3 * MIB)
    assert (values["n_oss"], values["n_ost"]) == (144, 290)


def test_many_files_come_near_to_an_even_load() -> None:
    write = Write(nodes=18688, cores=16, burst=5.0 * MIB)
    even = write.bytes / 1008
    assert even < parameters(TITAN, write)["s_ost"] < 1.2 * even


@pytest.mark.parametrize("nodes", [1, 7, 200])
@pytest.mark.parametrize(
    ("machine", "symbol"), [(TITAN, "ost"), (TITAN, "oss"), (CETUS, "nsd"), (CETUS, "nsds")]
)
def test_larger_bursts_never_lighten_the_busiest(machine: Machine, symbol: str, nodes: int) -> None:
    sizes = [
        parameters(machine, Write(nodes=nodes, cores=3, burst=k * MIB / 7)) for k in range(1, 400)
    ]
    loads = [values[f"s_{symbol}"] for values in sizes]
    assert loads == sorted(loads)


def test_the_busiest_of_places_that_files_draw() -> None:
    """Two files on one of 1,008 places: less than one place is to be expected to have both."""
    assert busiest(1, 4, 1008) == 1
    assert busiest(2, 4, 1008) == 1
    assert busiest(5, 336, 336) == 5
    # 96 files on one of 48 places each: P(X > 4) = 0.0508, P(X > 5) = 0.0154, and 1/48 = 0.0208.
    assert busiest(96, 1, 48) == 5


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (Write(nodes=0, cores=1, burst=1e6), "0 nodes of titan"),
        (Write(nodes=1, cores=17, burst=1e6), "17 cores per node"),
        (Write(nodes=1, cores=1, burst=1e300), "a burst of 1e\\+300 bytes"),
        (Write(nodes=1, cores=1, burst=float("nan")), "a burst of nan"),
        (Write(nodes=1, cores=1, burst=1e6, stripe_count=0), "a stripe count of 0"),
        (Write(nodes=1, cores=1, burst=1e6, stripe_count=1009), "a stripe count of 1009"),
        (Write(nodes=1, cores=1, burst=1e6, stripe_size=0.0), "a stripe size of 0"),
        (Write(nodes=2, cores=1, burst=1e6, placement=(1,)), "placement must be 2"),
    ],
)
def test_a_write_that_a_machine_cannot_do_is_refused(write: Write, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(TITAN, write)
