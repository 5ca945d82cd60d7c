"""The segment file's header, layout and identity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store.format import Layout, SegmentHeader, pack_header, parse_header, segment_digest
from engine.store.frame import PAGE
from tests.engine.store.pieces import NAMESPACE, header, ids


def test_a_header_reads_back_as_it_was_written() -> None:
    first = header(provenance={"device": "cpu", "note": "한글"})
    page = pack_header(first, "d" * 64)
    assert len(page) == PAGE
    assert parse_header(page) == (first, "d" * 64)


@given(st.integers(0, PAGE - 1), st.integers(1, 255))
def test_no_byte_of_a_header_can_change_unnoticed(at: int, flip: int) -> None:
    page = bytearray(pack_header(header(), "d" * 64))
    page[at] ^= flip
    with pytest.raises(ValueError, match="its header|its format|not a segment file"):
        parse_header(bytes(page))


def test_the_identity_is_the_same_on_every_machine_and_version() -> None:
    assert segment_digest(NAMESPACE, "", 0, [1, 2, 3]) == "d04071276ccfbd503cf698ffe83dd9ff912257128600cff397a22555fcc005ce"


@pytest.mark.parametrize(
    ("namespace", "parent", "start", "tokens"),
    [
        ("cd" * 32, "ef" * 32, 5, [1, 2, 3]),
        (NAMESPACE, "01" * 32, 5, [1, 2, 3]),
        (NAMESPACE, "ef" * 32, 6, [1, 2, 3]),
        (NAMESPACE, "ef" * 32, 5, [1, 2, 4]),
        (NAMESPACE, "ef" * 32, 5, [1, 2]),
    ],
)
def test_any_difference_in_what_was_read_is_another_identity(namespace: str, parent: str, start: int, tokens: list[int]) -> None:
    assert segment_digest(namespace, parent, start, tokens) != segment_digest(NAMESPACE, "ef" * 32, 5, [1, 2, 3])


def test_provenance_is_not_part_of_the_identity() -> None:
    assert header().digest(ids()) == header(provenance={"device": "cuda"}).digest(ids())


def test_extents_start_on_pages_and_the_file_ends_with_its_mark() -> None:
    layout = Layout.of(header(tokens=1024, layers=30, kv_heads=3, head_dim=64))
    assert layout.extent_bytes == 3 * 1024 * 64 * 2
    assert layout.stride == layout.extent_bytes  # a full segment of an ordinary model wastes nothing
    assert layout.ids_at == PAGE + 60 * layout.stride
    assert layout.size == layout.ids_at + 1024 * 4 + 8 * 62 + 8


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": 0},
        {"tokens": 1025},
        {"layers": 0},
        {"dtype": "float16"},
        {"namespace": ""},
        {"parent": "", "start": 7},
        {"parent": "ab" * 32, "start": 0},
    ],
)
def test_a_header_no_segment_can_have_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (each says something else)
        header(**changes)  # type: ignore[arg-type]


def test_a_provenance_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="provenance"):
        pack_header(header(provenance={"note": "x" * 5000}), "d" * 64)


def test_a_header_of_a_later_format_says_so() -> None:
    page = bytearray(pack_header(header(), "d" * 64))
    page[8] = 2
    with pytest.raises(ValueError, match="newer than this program"):
        parse_header(bytes(page))


def test_headers_with_the_same_fields_are_equal() -> None:
    assert isinstance(header(), SegmentHeader)
    assert header() == header()
