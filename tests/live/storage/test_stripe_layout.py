"""Stripe maps, on layouts in the documented formats; see layouts/README.md."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.identities import TargetId
from penstock.live.ionode import _schedulers
from penstock.live.storage.stripe_layout import END_OF_FILE, Component, StripeMap

LAYOUTS = Path(__file__).parent / "layouts"
MIB = 1 << 20


def targets(*numbers: int) -> tuple[TargetId, ...]:
    return tuple(map(TargetId, numbers))


def layout(name: str) -> str:
    return (LAYOUTS / f"{name}.txt").read_text()


# Lustre's structures, written out once more after lustre_user.h.


def plain(stripe_size: int, osts: Sequence[int], *, count: int | None = None) -> bytes:
    """lov_user_md_v1 with its lov_user_ost_data_v1."""
    count = len(osts) if count is None else count
    head = struct.pack("<II QQ IHH", 0x0BD10BD0, 1, 77, 0, stripe_size, count, 0)
    return head + b"".join(struct.pack("<QQII", 1000 + ost, 0, 3, ost) for ost in osts)


def in_pool(stripe_size: int, osts: Sequence[int], *, count: int | None = None) -> bytes:
    """lov_user_md_v3: as v1, with another magic number and 16 bytes of a pool's name."""
    v1 = plain(stripe_size, osts, count=count)
    return struct.pack("<I", 0x0BD30BD0) + v1[4:32] + b"flash".ljust(16, b"\0") + v1[32:]


def composite(*parts: tuple[int, int, int, bytes]) -> bytes:
    """lov_comp_md_v1 of (flags, start, end, layout)."""
    at = 32 + 48 * len(parts)
    entries, blobs = b"", b""
    for k, (flags, start, end, blob) in enumerate(parts):
        offset = at + len(blobs)
        entries += struct.pack(
            "<II QQ III Q I", k + 1, flags, start, end, offset, len(blob), 0, 0, 0
        )
        blobs += blob
    size = at + len(blobs)
    head = struct.pack("<IIIHH H3H Q", 0x0BD60BD0, size, 1, 0, len(parts), 0, 0, 0, 0, 0)
    return head + entries + blobs


INIT, STALE, EXTENSION = 0x10, 0x01, 0x40
PROGRESSIVE = composite(
    (INIT, 0, 4 * MIB, plain(MIB, [7])),
    (INIT, 4 * MIB, 256 * MIB, in_pool(2 * MIB, [1, 9, 4, 6])),
    (0, 256 * MIB, END_OF_FILE, plain(4 * MIB, [], count=8)),
)


def test_fixed_stripes_go_round() -> None:
    stripes = StripeMap.fixed(100, 3)
    assert [stripes.server(offset) for offset in (0, 99, 100, 299, 300, 10_000)] == [
        0,
        0,
        1,
        2,
        0,
        1,
    ]


def test_plain_layout_is_the_same_in_all_forms() -> None:
    expected = StripeMap((Component(0, END_OF_FILE, MIB, targets(5, 0, 2)),))
    assert StripeMap.from_getstripe(layout("getstripe-plain")) == expected
    assert StripeMap.from_lustre(plain(MIB, [5, 0, 2])) == expected
    assert StripeMap.from_lustre(in_pool(MIB, [5, 0, 2])) == expected
    assert [expected.server(k * MIB) for k in range(4)] == [5, 0, 2, 5]


def test_progressive_layout_is_the_same_in_both_forms() -> None:
    text = StripeMap.from_getstripe(layout("getstripe-composite"))
    assert text == StripeMap.from_lustre(PROGRESSIVE)
    # The first 4 MiB are on one target; then stripes of 2 MiB, counted from the file's beginning:
    # byte 4 MiB is in stripe 2, the third of four targets.
    assert [text.server(offset) for offset in (0, 4 * MIB - 1, 4 * MIB, 6 * MIB, 8 * MIB)] == [
        7,
        7,
        4,
        6,
        1,
    ]
    # Nobody wrote to the last component: its targets are not chosen, only their number is known.
    assert text.server(256 * MIB + 5 * 4 * MIB) == (64 + 5) % 8


def test_stale_mirrors_and_extensions_are_passed_over() -> None:
    expected = StripeMap((Component(0, END_OF_FILE, MIB, targets(8, 2)),))
    assert StripeMap.from_getstripe(layout("getstripe-mirrored")) == expected
    value = composite(
        (INIT | STALE, 0, END_OF_FILE, plain(MIB, [3])),
        (EXTENSION, 0, END_OF_FILE, plain(MIB, [4])),
        (INIT, 0, END_OF_FILE, plain(MIB, [8, 2])),
    )
    assert StripeMap.from_lustre(value) == expected


def test_a_directory_has_numbers_of_targets_only() -> None:
    lustre = StripeMap.from_getstripe(layout("getstripe-directory"))
    assert lustre.components == (
        Component(0, 65536, 65536, targets(0)),
        Component(65536, END_OF_FILE, MIB, targets(0)),
    )
    beegfs = StripeMap.from_beegfs(layout("beegfs-7-directory"))
    assert beegfs == StripeMap.fixed(MIB, 4)


def test_beegfs_targets_in_their_order() -> None:
    seven = StripeMap.from_beegfs(layout("beegfs-7-file"))
    assert seven.components == (Component(0, END_OF_FILE, 512 << 10, targets(103, 201, 302)),)
    eight = StripeMap.from_beegfs(layout("beegfs-8-file"))
    assert eight.components == (Component(0, END_OF_FILE, 2 * MIB, targets(401, 102)),)


def test_beyond_the_layout_the_last_component_counts() -> None:
    value = composite((INIT, 0, MIB, plain(MIB, [3])), (INIT, MIB, 2 * MIB, plain(MIB, [5])))
    assert StripeMap.from_lustre(value).server(9 * MIB) == 5


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0" * 64,
        plain(MIB, [1, 2])[:-1],
        plain(0, [1]),
        composite(),
        composite((STALE, 0, END_OF_FILE, plain(MIB, [1]))),
        PROGRESSIVE[:-1],
        PROGRESSIVE[:40],
    ],
)
def test_what_is_no_layout_is_refused(value: bytes) -> None:
    with pytest.raises(InputError):
        StripeMap.from_lustre(value)
    assert _schedulers.lustre_server(value, 0) is None


@pytest.mark.parametrize(
    "text", ["", "lmm_stripe_count: 2\n", layout("getstripe-plain") * 2, "Chunksize: large\n"]
)
def test_what_was_not_printed_by_the_tools_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        StripeMap.from_getstripe(text)
    with pytest.raises(InputError):
        StripeMap.from_beegfs(text)


LAYOUT = st.builds(
    lambda form, size, osts, count: form(size, osts, count=None if osts else count),
    st.sampled_from([plain, in_pool]),
    st.sampled_from([1, 100, 65536, MIB]),
    st.lists(st.integers(0, 2**32 - 1), max_size=5),
    st.sampled_from([0, 1, 3, 0xFFFF]),
)
PART = st.tuples(
    st.sampled_from([INIT, 0, STALE, EXTENSION]),
    st.integers(0, 10 * MIB),
    st.sampled_from([MIB, 5 * MIB, END_OF_FILE]),
    LAYOUT,
)
VALUE = st.one_of(LAYOUT, st.lists(PART, max_size=4).map(lambda parts: composite(*parts)))


@given(value=VALUE, offset=st.integers(0, 12 * MIB), cut=st.integers(0, 400), data=st.data())
def test_native_map_does_what_this_one_does(
    value: bytes, offset: int, cut: int, data: st.DataObject
) -> None:
    spoilt = bytearray(value[: len(value) - cut] if cut < 100 else value)
    if spoilt and cut % 2:
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] ^= 1 << cut % 8
    for layout in (value, bytes(spoilt)):
        try:
            expected = StripeMap.from_lustre(layout).server(offset)
        except InputError:
            expected = None
        assert _schedulers.lustre_server(layout, offset) == expected


def tool(folder: Path, name: str, says: str) -> None:
    (folder / name).write_text(f'#!/bin/sh\necho "$@" > "$0.asked"\ncat <<END\n{says}END\n')
    (folder / name).chmod(0o755)


def test_map_of_a_file_asks_the_file_system(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.touch()
    requests = []

    def getxattr(path: object, name: str) -> bytes:
        requests.append((path, name))
        if name != "trusted.lov":
            raise OSError(95, "not supported")
        return PROGRESSIVE

    assert StripeMap.of_file(file, getxattr=getxattr) == StripeMap.from_lustre(PROGRESSIVE)
    assert requests == [(file, "lustre.lov"), (file, "trusted.lov")]


def test_map_of_a_file_asks_beegfs_and_falls_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data"
    file.touch()
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    default = StripeMap.fixed(4096, 5)
    assert StripeMap.of_file(file, default) == default
    tool(tools, "beegfs", layout("beegfs-8-file"))
    assert StripeMap.of_file(file, default).components[0].targets == (401, 102)
    assert (tools / "beegfs.asked").read_text() == f"entry info --retro {file}\n"
    tool(tools, "beegfs-ctl", layout("beegfs-7-file"))
    assert StripeMap.of_file(file, default).components[0].targets == (103, 201, 302)
    assert (tools / "beegfs-ctl.asked").read_text() == f"--getentryinfo {file}\n"
    for name in ("beegfs", "beegfs-ctl"):  # installed, but the file is on something else
        (tools / name).write_text("#!/bin/sh\necho 'Unable to find entry'\nexit 1\n")
    assert StripeMap.of_file(file, default) == default
