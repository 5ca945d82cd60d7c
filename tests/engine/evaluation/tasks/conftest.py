"""Vocabularies in which tokens are counted: of bytes and a few merges, and one that writes a space as "▁"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.evaluation.tasks.problem import Encode
from engine.model.sentencepiece_vocabulary import added_json
from engine.model.tokenizer import Tokenizer
from tests.engine.model.tiny_vocabulary import byte_level_json, sentencepiece_model, tokenizer_json


@pytest.fixture(scope="session")
def encode(tmp_path_factory: pytest.TempPathFactory) -> Encode:
    """Of bytes."""
    return _tokenizer(tmp_path_factory.mktemp("bytes"), byte_level_json()).encode_ids


@pytest.fixture(scope="session", params=["bytes", "prepend", "sentencepiece"])
def any_encode(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Encode:
    """Each kind in turn."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sentencepiece":
        (folder / "tokenizer.model").write_bytes(sentencepiece_model())
        (folder / "added_tokens.json").write_text(json.dumps(added_json({}, spaced=True)))
        return Tokenizer(folder).encode_ids
    return _tokenizer(folder, byte_level_json() if request.param == "bytes" else tokenizer_json(request.param)).encode_ids


def _tokenizer(folder: Path, stored: str) -> Tokenizer:
    (folder / "tokenizer.json").write_text(stored, encoding="utf-8")
    return Tokenizer(folder)
