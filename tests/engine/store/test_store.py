"""The store: what is committed comes back bit for bit, and what isn't what it says is never served."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.errors import LongshelfError
from engine.store.format import FORM, Layout
from engine.store.frame import PAGE
from engine.store.store import Store
from tests.engine.store.pieces import header, ids, kv


@pytest.fixture
def store(tmp_path: Path) -> Store:
    folder = tmp_path / "segments"
    folder.mkdir()
    return Store(folder, floor=0)


def add(store: Store, seed: int = 0, parent: str = "", start: int = 0) -> str:
    piece = header(parent=parent, start=start)
    return store.commit(piece, ids(first=seed * 10), kv(piece, seed))


def flip(path: Path, at: int, bits: int = 0x10) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ bits]))


def kind_of_opening(store: Store, digest: str) -> str:
    with pytest.raises(LongshelfError) as caught:
        store.open(digest).touch_all()
    return caught.value.kind


def test_keys_and_values_come_back_bit_for_bit(store: Store) -> None:
    piece = header(tokens=5)
    written = kv(piece)
    segment = store.open(store.commit(piece, ids(5), written))
    for layer in range(piece.layers):
        assert segment.key(layer).dtype is torch.bfloat16
        assert segment.key(layer).shape == (2, 5, 8)
        assert np.array_equal(segment.key(layer).view(torch.int16).numpy().view(np.uint16), written[layer, 0])
        assert np.array_equal(segment.value(layer).view(torch.int16).numpy().view(np.uint16), written[layer, 1])
    assert segment.ids.tolist() == ids(5)
    assert segment.header == piece


def test_float32_comes_back_bit_for_bit(store: Store) -> None:
    piece = header(dtype="float32")
    written = kv(piece)
    segment = store.open(store.commit(piece, ids(), written))
    assert np.array_equal(segment.value(1).numpy(), written[1, 1])


def test_a_tensor_raw_bits_and_raw_bytes_make_the_same_file(tmp_path: Path) -> None:
    piece = header()
    bits = np.asarray(kv(piece))
    forms = [bits, torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16), bits.reshape(-1).view(np.uint8)]
    files = []
    for number, form in enumerate(forms):
        store = Store(tmp_path / str(number), floor=0)
        store.folder.mkdir()
        files.append(store.path(store.commit(piece, ids(), form)).read_bytes())
    assert files[0] == files[1] == files[2]


def test_tensors_stand_on_the_file_itself(store: Store) -> None:
    segment = store.open(add(store))
    assert segment.key(1).data_ptr() == segment.key(1).data_ptr()
    assert segment.key(1).data_ptr() - segment.key(0).data_ptr() == 2 * PAGE
    assert segment.key(0).data_ptr() % PAGE == 0


def test_writing_into_a_tensor_changes_no_file(store: Store) -> None:
    digest = add(store)
    before = store.path(digest).read_bytes()
    store.open(digest).key(0).zero_()
    assert store.path(digest).read_bytes() == before


def test_tensors_outlive_the_segment(store: Store) -> None:
    segment = store.open(add(store))
    key = segment.key(0)
    expected = key.clone()
    segment.close()
    assert torch.equal(key.view(torch.int16), expected.view(torch.int16))
    with pytest.raises(ValueError, match="closed"):
        segment.key(0)


def test_files_are_private_and_lie_in_folders_of_two_digits(store: Store) -> None:
    digest = add(store)
    path = store.folder / digest[:2] / f"{digest}.kv"
    assert store.path(digest) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert store.size(digest) == Layout.of(header()).size == path.stat().st_size


def test_committing_again_keeps_the_file_that_is_there(store: Store) -> None:
    piece = header()
    digest = store.commit(piece, ids(), kv(piece, seed=1))
    first = store.path(digest).read_bytes()
    assert store.commit(piece, ids(), kv(piece, seed=2)) == digest
    assert store.path(digest).read_bytes() == first


def test_committing_again_replaces_a_damaged_file(store: Store) -> None:
    digest = add(store)
    whole = store.path(digest).read_bytes()
    flip(store.path(digest), PAGE + 3)
    add(store)
    assert store.path(digest).read_bytes() == whole


def test_no_byte_of_a_file_can_change_unnoticed(store: Store) -> None:
    digest = add(store)
    path = store.path(digest)
    layout = Layout.of(header())
    regions = [
        range(0, PAGE, 37),  # header
        range(PAGE, layout.ids_at, 61),  # keys and values of both layers, and the filling behind them
        range(layout.ids_at, layout.size),  # ids, their filling, checksums, end mark
    ]
    for at in (at for region in regions for at in region):
        flip(path, at)
        assert kind_of_opening(Store(store.folder), digest) == "segment_damaged", f"byte {at}"
        flip(path, at)
    Store(store.folder).verify(digest)


def test_a_file_of_another_length_is_refused_before_it_is_mapped(store: Store) -> None:
    digest = add(store)
    path = store.path(digest)
    whole = path.read_bytes()
    for length in (0, 1, 24, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, len(whole) - len(FORM.end), len(whole) - 1):
        path.write_bytes(whole[:length])
        assert kind_of_opening(store, digest) == "segment_damaged", f"{length} bytes"
    path.write_bytes(whole + b"\0")
    assert kind_of_opening(store, digest) == "segment_damaged"


def test_a_foreign_file_is_refused(store: Store) -> None:
    digest = add(store)
    store.path(digest).write_bytes(os.urandom(Layout.of(header()).size))
    assert kind_of_opening(store, digest) == "segment_damaged"


def test_two_files_that_changed_places_are_refused(store: Store) -> None:
    first, second = store.path(add(store, 1)), store.path(add(store, 2))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    assert kind_of_opening(store, first.stem) == "segment_damaged"
    assert kind_of_opening(store, second.stem) == "segment_damaged"


def test_the_tail_of_another_file_is_refused(store: Store) -> None:
    first, second = store.path(add(store, 1)), store.path(add(store, 2))
    at = Layout.of(header()).table_at
    first.write_bytes(first.read_bytes()[:at] + second.read_bytes()[at:])
    assert kind_of_opening(store, first.stem) == "segment_damaged"


def test_the_header_of_another_file_with_the_same_ids_is_refused(store: Store) -> None:
    first, second = header(), header(provenance={"device": "cuda"})
    other = Store(store.folder.parent / "other", floor=0)
    other.folder.mkdir()
    one = store.path(store.commit(first, ids(), kv(first, 1)))
    two = other.path(other.commit(second, ids(), kv(second, 2)))
    one.write_bytes(two.read_bytes()[:PAGE] + one.read_bytes()[PAGE:])
    assert kind_of_opening(store, one.stem) == "segment_damaged"


def test_other_ids_or_another_chain_than_expected_are_refused(store: Store) -> None:
    digest = add(store)
    store.open(digest, expect_ids=ids(first=0), expect_parent="")
    for expected in ({"expect_ids": ids(first=1)}, {"expect_ids": ids(tokens=4, first=0)}, {"expect_parent": "ab" * 32}):
        with pytest.raises(LongshelfError) as caught:
            store.open(digest, **expected)  # type: ignore[arg-type]
        assert caught.value.kind == "segment_damaged"


def test_a_segment_that_is_not_there_is_missing(store: Store) -> None:
    assert not store.has("00" * 32)
    for asked in (store.open, store.size, store.verify):
        with pytest.raises(LongshelfError) as caught:
            asked("00" * 32)
        assert caught.value.kind == "segment_missing"


def test_kv_or_ids_that_do_not_fit_the_header_are_refused(store: Store) -> None:
    piece = header()
    good = np.asarray(kv(piece))
    wrong = [
        good[:1],
        good.astype(np.float32),
        good.transpose(0, 1, 2, 4, 3),
        good.reshape(-1),
        np.asfortranarray(good),
        torch.zeros(piece.shape),
        torch.zeros(piece.shape, dtype=torch.float16),
    ]
    for form in wrong:
        with pytest.raises(ValueError, match="kv"):
            store.commit(piece, ids(), form)
    with pytest.raises(ValueError, match="4 ids"):
        store.commit(piece, ids(4), good)
    assert store.usage() == 0


def test_removing_says_whether_there_was_something(store: Store) -> None:
    digest = add(store)
    segment = store.open(digest)
    assert store.remove(digest)
    assert not store.has(digest)
    assert not store.remove(digest)
    segment.touch_all()  # what is mapped stays whole
    assert not segment.unchanged()


def test_it_lists_and_counts_only_its_own_files(store: Store) -> None:
    digests = sorted(add(store, seed) for seed in range(3))
    (store.folder / "notes.txt").write_text("not ours")
    (store.folder / digests[0][:2] / "stray.kv").write_text("not ours")
    wrong_folder = store.folder / "zz"
    wrong_folder.mkdir()
    shutil.copy(store.path(digests[0]), wrong_folder)
    assert list(store.digests()) == digests
    assert store.usage() == 3 * Layout.of(header()).size + len("not ours")


def test_scanning_gives_all_that_a_catalog_needs_and_skips_what_is_damaged(store: Store) -> None:
    first = add(store, 1)
    second = add(store, 2, parent=first, start=5)
    broken = add(store, 3)
    flip(store.path(broken), 100)
    found = {digest: (piece.parent, piece.start, list(tokens)) for digest, piece, tokens in store.scan()}
    assert found == {first: ("", 0, ids(first=10)), second: (first, 5, ids(first=20))}


def test_a_file_that_changes_after_it_was_verified_is_verified_again(store: Store) -> None:
    digest = add(store)
    segment = store.open(digest)
    segment.touch_all()
    flip(store.path(digest), PAGE)
    os.utime(store.path(digest), ns=(1, 1))  # clocks of file systems can be too coarse to tell two writes of a test apart
    assert not segment.unchanged()
    assert kind_of_opening(store, digest) == "segment_damaged"


def test_damage_is_told_at_every_touch(store: Store) -> None:
    digest = add(store)
    flip(store.path(digest), PAGE)
    segment = store.open(digest)
    segment.value(0)
    for _ in range(2):
        with pytest.raises(LongshelfError, match="keys of layer 0"):
            segment.key(0)


def test_several_threads_may_touch_one_segment(store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    piece = header(tokens=64, layers=16)
    written = kv(piece)
    segment = store.open(store.commit(piece, ids(64), written))
    with ThreadPoolExecutor(4) as pool:
        sums = set(pool.map(lambda _: sum(int(segment.extent(number).sum()) for number in range(32)), range(8)))
    assert sums == {int(np.asarray(written).view(np.uint8).sum())}


def test_more_segments_can_be_open_than_a_process_may_open_files_by_default(store: Store) -> None:
    digest = add(store)
    held = [store.open(digest) for _ in range(1100)]
    assert len(held) == 1100


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "segments").write_text("a file, not a folder")
    store = Store(tmp_path / "segments", floor=0)
    piece = header()
    with pytest.raises(LongshelfError) as caught:
        store.commit(piece, ids(), kv(piece))
    assert caught.value.kind == "store_unavailable"
    assert "segments" in caught.value.message
