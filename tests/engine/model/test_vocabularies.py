"""Each kind of vocabulary keeps what `Tokenizer` promises, and SentencePiece's ids and offsets are its own library's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sentencepiece
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import LongshelfError
from engine.model import tokenizer as module
from engine.model.gguf_file import GgufFile
from engine.model.gguf_tokenizer import write_tokenizer
from engine.model.sentencepiece_vocabulary import added_json
from engine.model.tokenizer import Tokenizer, TokenStream
from engine.model.tokenizer_check import check
from tests.engine.model import tiny_gguf
from tests.engine.model.tiny_vocabulary import SPECIALS, sentencepiece_model, tokenizer_json

KINDS = ("prepend", "metaspace", "unigram", "sentencepiece", "sentencepiece-unigram", "gguf")
TEXTS = st.text(st.sampled_from(list("ab the18.,'s\n\n\t 나는문서é🙂½)]-_<>/s[INT]"))) | st.text().filter(lambda text: "▁" not in text)
MIXED = "It is\n\n나는 뷁 the  two [INST] </s> 12 🙂\n a document. 문서를 읽는다.\n"


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "gguf":
        return of_gguf(folder)
    if request.param.startswith("sentencepiece"):
        return of_sentencepiece(folder, request.param.partition("-")[2] or "bpe")
    (folder / "tokenizer.json").write_text(tokenizer_json(request.param), encoding="utf-8")
    return Tokenizer(folder)


def of_sentencepiece(folder: Path, kind: str = "bpe") -> Tokenizer:
    (folder / "tokenizer.model").write_bytes(sentencepiece_model(kind))
    added = {"[INST]": (3, True), "<|end|>": (700, True), "<|pad|>": (702, True)}
    (folder / "added_tokens.json").write_text(json.dumps(added_json(added, spaced=True)))
    return Tokenizer(folder)


def of_gguf(folder: Path) -> Tokenizer:
    """What becomes of the SentencePiece model when it travels in a GGUF."""
    its = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model())
    indices = range(its.piece_size())
    kinds = [2 if its.is_unknown(i) else 3 if its.is_control(i) else 6 if its.is_byte(i) else 4 if i == 3 else 1 for i in indices]
    path = tiny_gguf.write(
        folder / "tiny.gguf",
        tokenizer__ggml__model="llama",
        tokenizer__ggml__tokens=[its.id_to_piece(i) for i in indices],
        tokenizer__ggml__scores=[its.get_score(i) for i in indices],
        tokenizer__ggml__token_type=kinds,
    )
    return write_tokenizer(GgufFile(path), folder)


@settings(deadline=None)
@given(text=TEXTS)
def test_text_comes_back_from_its_ids_and_from_a_stream_of_them(tokenizer: Tokenizer, text: str) -> None:
    for begins in (True, False):
        ids = tokenizer.encode_ids(text, begins)
        assert tokenizer.encode(text, begins).ids == ids
        stream = TokenStream(tokenizer)
        streamed = "".join(map(stream.feed, ids)) + stream.flush()
        assert streamed == tokenizer.decode(ids) == (text if begins else text.removeprefix(" "))


@settings(deadline=None)
@given(text=TEXTS)
def test_offsets_cover_the_text_in_order_and_are_what_the_token_stands_for(tokenizer: Tokenizer, text: str) -> None:
    encoding, end = tokenizer.encode(text), 0
    spans: dict[tuple[int, int], bytes] = {}
    for index, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
        assert start in (end, end - 1)
        assert stop >= end
        end = stop
        spans[start, stop] = spans.get((start, stop), b"") + tokenizer.token_bytes(index)
    assert end == len(text)
    for (start, stop), written in spans.items():
        assert written.decode() in (text[start:stop], f" {text[start:stop]}")


@settings(deadline=None)
@given(text=TEXTS)
def test_encoding_in_pieces_gives_the_ids_and_offsets_of_the_whole(tokenizer: Tokenizer, text: str) -> None:
    whole = tokenizer.encode(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE", 3)
        assert tokenizer.encode(text) == whole


def test_a_special_token_in_plain_text_is_its_characters(tokenizer: Tokenizer) -> None:
    for name in [tokenizer.name(index) for index in tokenizer.special_ids]:
        text = f"a{name}\n{name} b {name}{name}"
        assert tokenizer.special_ids.isdisjoint(tokenizer.encode_ids(text))
        assert tokenizer.decode(tokenizer.encode_ids(text)) == text
    check(tokenizer, lambda why: LongshelfError("model_damaged", why))


def test_template_text_has_special_tokens(tokenizer: Tokenizer) -> None:
    start, end = (tokenizer.token_id(name) for name in SPECIALS[1:])
    assert start is not None
    assert end is not None
    ids = tokenizer.encode_template("<s>a</s>")
    assert (ids[0], ids[-1], tokenizer.decode(ids)) == (start, end, "a")
    assert tokenizer.encode_template("a b</s>", begins=False) == [*tokenizer.encode_ids("a b", begins=False), end]
    assert tokenizer.encode_template("a b") == tokenizer.encode_ids("a b")


@pytest.mark.parametrize("kind", ["prepend", "metaspace", "unigram"])
def test_plain_ids_are_those_that_the_file_gives(kind: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(kind), encoding="utf-8")
    text = MIXED.replace("</s>", "")
    assert Tokenizer(tmp_path).encode_ids(text) == tokenizers.Tokenizer.from_str(tokenizer_json(kind)).encode(text).ids


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_ids_and_offsets_are_those_of_sentencepiece(kind: str, tmp_path: Path) -> None:
    theirs, ours = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(kind)), of_sentencepiece(tmp_path, kind)
    for text in (MIXED.replace("[INST]", ""), " a  b", "", "\n", "뷁"):
        expected = theirs.encode(text, return_type="offset_mapping")
        encoding = ours.encode(text)
        assert encoding.ids == expected["ids"]
        assert [end for _, end in encoding.offsets if end] == [end for _, end in _filled(expected["pieces"], expected["offsets"]) if end]
        assert ours.decode(encoding.ids) == theirs.decode(expected["ids"]) == text


def _filled(pieces: list[str], offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """SentencePiece's offsets; a byte that isn't its character's last has an empty range there, and the character's with us."""
    for at in range(len(pieces) - 2, -1, -1):
        if pieces[at].startswith("<0x") and offsets[at][0] == offsets[at][1]:
            offsets[at] = offsets[at + 1]
    return offsets


def test_a_gguf_tokenizes_as_the_sentencepiece_model_that_it_came_from(tmp_path: Path) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model())
    assert of_gguf(tmp_path).encode_ids(MIXED) == theirs.encode(MIXED)


def test_tokens_added_behind_the_model_are_known_to_the_template_alone(tmp_path: Path) -> None:
    ours = of_sentencepiece(tmp_path)
    assert ours.encode_template("<|end|>") == [700]
    assert (ours.vocab_size, ours.token_id("<|end|>"), ours.name(700), ours.decode([700])) == (703, 700, "<|end|>", "")
    assert max(ours.encode_ids("<|end|>[INST]")) < 700
    assert ours.encode_template("[INST]") == [3] != ours.encode_ids("[INST]")


def test_a_question_goes_on_without_a_space_of_its_own(tokenizer: Tokenizer) -> None:
    assert tokenizer.writes_space
    begun, going_on = tokenizer.encode("읽는다"), tokenizer.encode("읽는다", begins=False)
    assert begun.ids != going_on.ids == tokenizer.encode_ids("읽는다", begins=False)
    assert going_on.offsets[0][0] == 0


@pytest.mark.parametrize("content", [None, b"", b"\xff\xff broken"])
def test_a_missing_or_damaged_model_file_is_a_damaged_model(content: bytes | None, tmp_path: Path) -> None:
    of_sentencepiece(tmp_path)
    if content is None:
        (tmp_path / "added_tokens.json").unlink()
    else:
        (tmp_path / "tokenizer.model").write_bytes(content)
    with pytest.raises(LongshelfError) as caught:
        Tokenizer(tmp_path)
    assert caught.value.kind == "model_damaged"


def test_a_vocabulary_of_word_pieces_is_refused(tmp_path: Path) -> None:
    built = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    built.decoder = tokenizers.decoders.WordPiece()
    built.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(LongshelfError, match="WordPiece") as caught:
        Tokenizer(tmp_path)
    assert caught.value.kind == "model_unsupported"
