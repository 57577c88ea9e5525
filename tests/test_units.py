"""Quantities in words: the float nearest to what is written, or a clear refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from penstock import units
from penstock.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500 us", 5e-4),
        ("1.1us", 1.1e-6),
        ("3 \N{MICRO SIGN}s", 3e-6),
        ("7 ns", 7e-9),
        ("250 ms", 0.25),
        ("12", 12.0),
        (" 1e3 s ", 1000.0),
        ("30 min", 1800.0),
        ("6 h", 21600.0),
        ("1.5 d", 129600.0),
        (4, 4.0),
        (0.1, 0.1),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert units.seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("12 GB", 12e9), ("12 GiB", 12 * 2**30), ("1 kB", 1e3), ("1 KB", 1e3), ("0.1 KiB", 102.4)],
)
def test_volumes_and_bandwidths(text: str, size: float) -> None:
    assert units.volume(text) == size
    assert units.bandwidth(f"{text}/s") == size


def test_thousands_are_not_powers_of_two() -> None:
    assert units.volume("1 TiB") / units.volume("1 TB") == pytest.approx(1.0995116)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (units.seconds, "", "not a duration; give seconds"),
        (units.seconds, "soon", "not a duration; give seconds"),
        (units.seconds, "3 m", "unit 'm' is unknown; give seconds, or a number with ns, us"),
        (units.seconds, "3 S", "did you mean 's'"),
        (units.seconds, "-3 s", "zero or more"),
        (units.seconds, "nan", "not a duration"),
        (units.seconds, float("nan"), "finite"),
        (units.seconds, float("inf"), "finite"),
        (units.seconds, "1e400 s", "finite"),
        (units.seconds, "1_000 s", "not a duration"),
        (units.seconds, "\N{ARABIC-INDIC DIGIT THREE} s", "not a duration"),
        (units.seconds, "9" * 1000, "not a duration"),
        (units.seconds, "12 GB", "unit 'GB' is unknown"),
        (units.volume, "12 G", "unit 'G' is unknown"),
        (units.volume, "12 gib", "did you mean 'GiB'"),
        (units.bandwidth, "2 GB", "did you mean 'GB/s'"),
        (units.bandwidth, "2 Gb/s", "did you mean 'GB/s'"),
        (units.bandwidth, "-1 B/s", "zero or more"),
    ],
)
def test_what_is_refused(read: object, text: str | float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(text)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.show_seconds(0), "0 s"),
        (units.show_seconds(5e-4), "500 us"),
        (units.show_seconds(0.9999), "1 s"),
        (units.show_seconds(90), "1.5 min"),
        (units.show_seconds(20_000), "5.56 h"),
        (units.show_volume(500), "500 B"),
        (units.show_volume(12 * 2**30), "12 GiB"),
        (units.show_bandwidth(2 * 2**30), "2,048 MiB/s"),
        (units.show_bandwidth(2**19), "0.5 MiB/s"),
    ],
)
def test_for_people(shown: str, text: str) -> None:
    assert shown == text


@examples(200)
@given(st.floats(0, 1e300))
def test_a_number_means_itself(value: float) -> None:
    assert units.seconds(repr(value)) == value
    assert units.volume(f"{value!r} B") == value


@examples(300)
@given(st.text(max_size=30) | st.from_regex(r"[0-9.eE+-]{1,12} ?[a-zA-Z/]{0,5}", fullmatch=True))
def test_any_text_is_a_quantity_or_an_input_error(text: str) -> None:
    for read in (units.seconds, units.volume, units.bandwidth):
        try:
            value = read(text)
        except InputError:
            continue
        assert 0 <= value < float("inf")
    assert isinstance(units.is_volume(text), bool)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (1000, "1,000 jobs")]
)
def test_a_count_has_its_noun(count: int, text: str) -> None:
    assert units.show_count(count, "job") == text
