"""Ids, offsets and streaming of byte-level BPE, on a vocabulary of 256 bytes and a few merges."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import LongshelfError
from engine.model import tokenizer as module
from engine.model.gguf_file import GgufFile
from engine.model.gguf_tokenizer import write_tokenizer
from engine.model.json_vocabulary import byte_symbols
from engine.model.tokenizer import Tokenizer, TokenStream
from tests.engine.model import tiny_gguf

RULES = ("smollm", "gpt-2", "llama-bpe", "qwen2")
TEXTS = st.text(st.sampled_from(list("ab the18.,'s\n\n\t \r\f나é🙂½)]-_\x1c\x85\u2028"))) | st.text()


@pytest.fixture(scope="module", params=RULES)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp(request.param)
    return write_tokenizer(GgufFile(tiny_gguf.write(folder / "tiny.gguf", tokenizer__ggml__pre=request.param)), folder)


@given(text=TEXTS)
def test_text_comes_back_from_its_ids(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode_ids(text)) == text


@given(text=TEXTS)
def test_offsets_cover_the_text_in_order(tokenizer: Tokenizer, text: str) -> None:
    encoding = tokenizer.encode(text)
    assert encoding.ids == tokenizer.encode_ids(text)
    end = 0
    for start, stop in encoding.offsets:
        assert start in (end, end - 1)  # a token may begin inside the character that the one before it split
        assert stop >= end
        end = stop
    assert end == len(text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
def test_encoding_in_pieces_gives_the_ids_and_offsets_of_the_whole(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    whole = tokenizer.encode(text)
    monkeypatch.setattr(module, "PIECE", 3)
    assert tokenizer.encode(text) == whole


def test_a_long_text_is_cut_into_pieces() -> None:
    text = "abc.\ndef\n\nghi  \n" * 100_000
    pieces = module._runs(text)
    assert "".join(pieces) == text
    assert {piece[:4] for piece in pieces[1:]} == {"def\n"}
    assert max(map(len, pieces)) < module.PIECE + 100


@pytest.mark.parametrize("special", tiny_gguf.SPECIALS)
def test_a_special_token_in_plain_text_is_its_characters(tokenizer: Tokenizer, special: str) -> None:
    text = f"a{special}\n{special} b {special}"
    encoding = tokenizer.encode(text)
    assert tokenizer.special_ids.isdisjoint(encoding.ids)
    assert tokenizer.special_ids.isdisjoint(tokenizer.encode_ids(text))
    assert tokenizer.decode(encoding.ids) == text


def test_template_text_has_special_tokens(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_template("<|im_start|>a<|im_end|>")
    assert ids == [1, *tokenizer.encode_ids("a"), 2]
    assert tokenizer.encode_ids("<|im_end|>") != [2]  # asking for a template leaves plain encoding as it was
    assert tokenizer.decode(ids) == "a"


def test_digits_of_smollm_and_qwen_are_single_tokens_and_those_of_llama_are_not(
    tokenizer: Tokenizer, request: pytest.FixtureRequest
) -> None:
    digits = [tiny_gguf.TOKENS[i] for i in tokenizer.encode_ids("18")]
    assert digits == (["1", "8"] if request.node.callspec.params["tokenizer"] in ("smollm", "qwen2") else ["18"])


def test_tokens_that_split_a_character_share_its_range(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("나é").offsets == [(0, 1)] * 3 + [(1, 2)] * 2


def test_the_token_at_an_offset_is_found(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.encode("the 나 and")
    assert [encoding.offsets[encoding.token_at(at)] for at in (0, 2, 4)] == [(0, 3), (0, 3), (4, 5)]
    assert encoding.token_at(9) == len(encoding)


def test_a_stream_gives_a_character_when_it_is_complete(tokenizer: Tokenizer) -> None:
    stream = TokenStream(tokenizer)
    assert [stream.feed(token) for token in tokenizer.encode_ids("나a")] == ["", "", "나", "a"]


@given(text=TEXTS)
def test_a_stream_joined_is_the_text(tokenizer: Tokenizer, text: str) -> None:
    stream = TokenStream(tokenizer)
    assert "".join(map(stream.feed, tokenizer.encode_ids(text))) + stream.flush() == text


def test_an_unfinished_character_is_dropped_at_the_end(tokenizer: Tokenizer) -> None:
    stream = TokenStream(tokenizer)
    ids = tokenizer.encode_ids("a나")[:-1]
    assert "".join(map(stream.feed, ids)) + stream.flush() == "a" == tokenizer.decode(ids)
    assert stream.feed(tokenizer.encode_ids("b")[0]) == "b"


def test_bytes_that_are_no_text_become_replacement_characters(tokenizer: Tokenizer) -> None:
    symbols = byte_symbols()
    ids = [tiny_gguf.TOKENS.index(symbols[byte]) for byte in (0x61, 0xFF, 0x62)]
    assert tokenizer.decode(ids) == "a\ufffdb"


def test_special_and_unknown_ids_have_no_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([0, 1, 2, 10_000_000]) == ""


def test_a_lone_surrogate_keeps_its_place(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a\udc80b").offsets == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]


def test_the_digest_is_that_of_the_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(tokenizer._files[0].read_bytes() + b"\n")
    assert Tokenizer(tmp_path).digest != tokenizer.digest


def test_a_missing_or_damaged_file_is_a_damaged_model(tmp_path: Path) -> None:
    for content in (None, "{", "{}"):
        if content is not None:
            (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(LongshelfError) as caught:
            Tokenizer(tmp_path)
        assert caught.value.kind == "model_damaged"
