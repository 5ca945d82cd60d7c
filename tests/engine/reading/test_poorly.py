"""A document that its model reads far worse than its usual texts is marked, and K and V are what they are without looking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.home import Home
from engine.model.build import write_json
from engine.model.card import CARD_FILE, read_json
from engine.reading.memory import Chain, Watcher, compute_segments
from engine.reading.poorly import language_of
from engine.shelf import Call, Shelf

ENGLISH = "It is a truth universally acknowledged, that a single man in possession of a good fortune must be in want of a wife.\n" * 20


def add(shelf: Shelf, path: Path, text: str) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8")
    document: dict[str, Any] = shelf.call("documents.add", {"paths": [str(path)]}, Call())["documents"][0]
    return document


def of_usual(shelf: Shelf, bits: float) -> None:
    """Have the tiny model's card say that it usually needs so many bits a letter."""
    card = shelf.models.open().folder / CARD_FILE
    write_json(card, read_json(card) | {"usual_bits": bits})


def test_a_document_is_marked_from_one_and_a_half_times_the_usual(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, tmp_path / "a.txt", ENGLISH)
    assert document["reads_poorly"] is None
    of_usual(tiny_shelf, 1.0)
    poorly = tiny_shelf.call("documents.list", {}, Call())["documents"][0]["reads_poorly"]
    assert poorly["times_usual"] > 1.5
    assert (poorly["language"], poorly["message"]) == (None, "tiny reads this text poorly.")
    assert poorly["bits_per_character"] == pytest.approx(poorly["times_usual"], rel=0.25)  # a letter a token, no merges in English
    assert tiny_shelf.call("documents.show", {"id": document["id"]}, Call())["reads_poorly"] == poorly


def test_text_too_short_to_tell_is_not_marked(tiny_shelf: Shelf, tmp_path: Path) -> None:
    of_usual(tiny_shelf, 1.0)
    assert add(tiny_shelf, tmp_path / "a.txt", ENGLISH[:300])["reads_poorly"] is None


def test_the_loss_is_kept_with_segments_that_are_found_again(tiny_shelf: Shelf, tmp_path: Path) -> None:
    of_usual(tiny_shelf, 1.0)
    first, again = add(tiny_shelf, tmp_path / "a.txt", ENGLISH), add(tiny_shelf, tmp_path / "b.txt", ENGLISH)
    assert again["segments_computed"] == 0
    assert again["reads_poorly"] == first["reads_poorly"] is not None


def test_the_loss_goes_with_the_segments(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, tmp_path / "a.txt", ENGLISH)
    count = "SELECT count(*) AS n FROM losses"
    assert (tiny_shelf.library.catalog.row(count) or {})["n"] > 0
    tiny_shelf.call("documents.remove", {"id": document["id"]}, Call())
    assert (tiny_shelf.library.catalog.row(count) or {})["n"] == 0


def test_looking_at_the_loss_changes_no_bit_of_k_and_v(tiny_shelf: Shelf) -> None:
    model, _ = tiny_shelf.model()
    ids = model.tokenizer.encode_ids(ENGLISH)[:700]

    def bare() -> torch.Tensor:
        tail, attention = Tail(model.config, model.decoder.dtype, len(ids)), Exact(model.config)
        sequence = Read((), tail)
        for start in range(0, len(ids), 512):
            chunk = ids[start : start + 512]
            rows = Rows([(sequence, len(chunk))])
            model.decoder.forward(torch.tensor(chunk), rows, attention)
            rows.advance()
        return tail.kv

    looked = tiny_shelf.model_thread.run(lambda: compute_segments(model, Chain(), ids, Watcher()))
    assert torch.equal(looked[0], tiny_shelf.model_thread.run(bare))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("나는 바다를 보았다 (sea).", "Korean"),
        ("銀河鉄道の夜", "Japanese"),
        ("人工智能", "Chinese"),
        ("Война и мир", "Russian"),
        ("A café, 3 × 4", None),
    ],
)
def test_a_language_is_told_from_its_letters(text: str, language: str | None) -> None:
    assert language_of(text) == language


@pytest.mark.journey
def test_the_default_model_reads_korean_poorly_and_english_well(fresh_model_home: Home, corpus: Path, tmp_path: Path) -> None:
    shelf = Shelf(fresh_model_home)
    try:
        korean, english = (
            add(shelf, tmp_path / name, (corpus / name).read_text(encoding="utf-8-sig")[20_000 : 20_000 + length])
            for name, length in (("날개.txt", 800), ("pride-and-prejudice.txt", 5000))
        )
    finally:
        shelf.close()
    assert english["reads_poorly"] is None
    assert korean["reads_poorly"]["language"] == "Korean"
    assert korean["reads_poorly"]["message"] == "smollm2 reads Korean poorly."
    assert "trained on Korean" in korean["reads_poorly"]["hint"]
