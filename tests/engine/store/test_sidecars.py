"""Sidecars: what was made of segments comes back bit for bit, is found by what it was made of, and is never taken for anything else."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.errors import LongshelfError
from engine.store.frame import PAGE
from engine.store.sidecar import Array, Recipe, SidecarHeader
from engine.store.sidecars import SidecarStore
from engine.store.store import Store
from tests.engine.store.crashing import Step, crashes
from tests.engine.store.pieces import NAMESPACE, header, ids, kv

RECIPE = Recipe("index", 1, NAMESPACE, ("12" * 32, "34" * 32), {"bits": 10, "tables": 150})
ARRAYS = {"keys": (torch.arange(2 * 3 * 700, dtype=torch.bfloat16).view(2, 3, 700), 2), "codes": (torch.arange(5000).to(torch.uint8), 0)}
DATA = [data for data, _ in ARRAYS.values()]


def described(recipe: Recipe = RECIPE) -> SidecarHeader:
    return SidecarHeader(recipe, tuple(Array.of(name, data, split) for name, (data, split) in ARRAYS.items()), {"device": "cpu"})


@pytest.fixture
def store(tmp_path: Path) -> SidecarStore:
    (folder := tmp_path / "sidecars").mkdir()
    return SidecarStore(folder, floor=0)


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def refusal(store: SidecarStore, digest: str) -> LongshelfError:
    with pytest.raises(LongshelfError) as caught:
        store.open(digest).touch_all()
    return caught.value


def test_arrays_come_back_bit_for_bit_with_what_they_are_made_of(store: SidecarStore) -> None:
    sidecar = store.open(store.commit(described(), DATA))
    assert sidecar.header == described()
    keys, codes = DATA
    assert all(torch.equal(sidecar.tensor("keys", 3 * row + column), keys[row, column]) for row in range(2) for column in range(3))
    assert torch.equal(sidecar.tensor("codes"), codes)
    assert sidecar.array("keys").shape == (2, 3, 700)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32", "uint8"])
def test_every_type_comes_back_as_it_was(store: SidecarStore, dtype: str) -> None:
    data = torch.arange(24).view(4, 6).to(getattr(torch, dtype))
    made = SidecarHeader(RECIPE, (Array.of("values", data, 1),))
    sidecar = store.open(store.commit(made, [data]))
    assert sidecar.tensor("values", 2).dtype is data.dtype
    assert torch.equal(sidecar.tensor("values", 2), data[2])


def test_a_piece_that_is_not_there_is_no_piece_of_the_next_array(store: SidecarStore) -> None:
    sidecar = store.open(store.commit(described(), DATA))
    with pytest.raises(IndexError):
        sidecar.tensor("keys", 6)


def test_tensors_stand_on_pages_of_the_file_itself(store: SidecarStore) -> None:
    sidecar = store.open(store.commit(described(), DATA))
    assert sidecar.tensor("keys", 1).data_ptr() - sidecar.tensor("keys").data_ptr() == PAGE
    assert sidecar.tensor("codes").data_ptr() % PAGE == 0


def test_the_size_is_known_before_it_is_written(store: SidecarStore) -> None:
    assert store.size(store.commit(described(), DATA)) == described().size == store.usage()


def test_a_long_chain_of_sources_takes_a_longer_header(store: SidecarStore) -> None:
    recipe = replace(RECIPE, sources=tuple(f"{number:064x}" for number in range(300)))
    sidecar = store.open(store.commit(described(recipe), DATA))
    assert sidecar.header.recipe.sources == recipe.sources
    assert len(sidecar.header.front) == 5 * PAGE
    assert torch.equal(sidecar.tensor("codes"), DATA[1])


def test_the_identity_is_the_same_on_every_machine_and_version() -> None:
    assert RECIPE.digest == "0f3dc90c28dda1476f9b8fa8b562bd50d3f16e4077b51b8e4304f9a72aa3ea8a"
    assert replace(RECIPE, settings={"tables": 150, "bits": 10}).digest == RECIPE.digest


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "sketch"},
        {"builder": 2},
        {"namespace": "cd" * 32},
        {"sources": ("34" * 32, "12" * 32)},
        {"sources": ("12" * 32,)},
        {"settings": {"bits": 10, "tables": 151}},
    ],
)
def test_any_difference_in_what_it_is_made_of_is_another_sidecar(change: dict[str, object]) -> None:
    assert replace(RECIPE, **change).digest != RECIPE.digest  # type: ignore[arg-type]


def test_no_byte_of_a_file_can_change_unnoticed(store: SidecarStore) -> None:
    digest = store.commit(described(), DATA)
    path = store.path(digest)
    size = path.stat().st_size
    whole = path.read_bytes()
    for at in (*range(0, PAGE, 101), *range(PAGE, size - 100, 397), *range(size - 100, size)):
        flip(path, at)
        assert refusal(SidecarStore(store.folder), digest).kind == "sidecar_damaged", f"byte {at}"
        path.write_bytes(whole)
    SidecarStore(store.folder).verify(digest)


def test_a_file_of_another_length_is_refused_before_it_is_mapped(store: SidecarStore) -> None:
    digest = store.commit(described(), DATA)
    whole = store.path(digest).read_bytes()
    for length in (0, 1, 24, PAGE - 1, PAGE, PAGE + 1, len(whole) - 1):
        store.path(digest).write_bytes(whole[:length])
        assert refusal(store, digest).kind == "sidecar_damaged", f"{length} bytes"
    store.path(digest).write_bytes(whole + b"\0")
    assert refusal(store, digest).kind == "sidecar_damaged"


def test_two_files_that_changed_places_are_refused(store: SidecarStore) -> None:
    other = replace(RECIPE, builder=2)
    first, second = (store.path(store.commit(described(recipe), DATA)) for recipe in (RECIPE, other))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    assert "another sidecar than its name says" in refusal(store, RECIPE.digest).message


def test_it_never_passes_as_a_segment_nor_a_segment_as_a_sidecar(store: SidecarStore, tmp_path: Path) -> None:
    digest = store.commit(described(), DATA)
    segments = Store(tmp_path / "segments", floor=0)
    segments.folder.mkdir()
    piece = header()
    segment = segments.commit(piece, ids(), kv(piece))
    one, two = store.path(digest).read_bytes(), segments.path(segment).read_bytes()
    store.path(digest).write_bytes(two)
    segments.path(segment).write_bytes(one)
    assert "not a sidecar file" in refusal(store, digest).message
    with pytest.raises(LongshelfError, match="not a segment file"):
        segments.open(segment)


def test_one_that_is_made_again_takes_the_place_of_the_old(store: SidecarStore) -> None:
    digest = store.commit(described(), DATA)
    flip(store.path(digest), PAGE)
    assert refusal(store, digest).kind == "sidecar_damaged"
    assert store.commit(described(), DATA) == digest
    store.open(digest).touch_all()


def test_one_that_is_not_there_is_missing(store: SidecarStore) -> None:
    assert refusal(store, RECIPE.digest).kind == "sidecar_missing"


@pytest.mark.parametrize(
    "wrong", [[DATA[0].float(), DATA[1]], [DATA[0][:1], DATA[1]], [DATA[0], DATA[1][::2]], [DATA[0].transpose(0, 1), DATA[1]], DATA[:1]]
)
def test_arrays_that_do_not_fit_the_header_are_refused(store: SidecarStore, wrong: list[torch.Tensor]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (each says something else)
        store.commit(described(), wrong)
    assert store.usage() == 0


@pytest.mark.parametrize(
    ("dtype", "shape", "split"), [("float16", (2, 3), 1), ("uint8", (2, 3), 2), ("uint8", (0, 3), 1), ("uint8", (), 0)]
)
def test_an_array_that_cannot_be_is_refused(dtype: str, shape: tuple[int, ...], split: int) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Array("values", dtype, shape, split)


def test_nothing_is_written_below_the_floor(store: SidecarStore) -> None:
    store.floor = 1 << 62
    with pytest.raises(LongshelfError) as caught:
        store.commit(described(), DATA)
    assert (caught.value.kind, store.usage()) == ("disk_full", 0)


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_commit_killed_at_any_step_leaves_all_or_nothing(store: SidecarStore) -> None:
    def commit(step: Step) -> None:
        SidecarStore(store.folder, floor=0).commit(described(), DATA)

    outcomes = set()
    for _ in crashes(commit):
        outcomes.add(store.has(RECIPE.digest))
        if store.has(RECIPE.digest):
            SidecarStore(store.folder).verify(RECIPE.digest)
        assert len(store.temporaries()) <= 1
        store.sweep_temporaries()
        store.remove(RECIPE.digest)
    assert outcomes == {True, False}
    store.verify(RECIPE.digest)
