"""The tokenizer.json that a GGUF's vocabulary stands for.

A GGUF keeps tokens, merges and the *name* of the rule that cuts text before merging; the rule itself is known to whoever reads the
file. Only rules in `_RULES` are built: a wrong rule gives plausible ids and a confused model, so an unknown name is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from engine.errors import LongshelfError
from engine.model.gguf_import import GgufFile
from engine.model.tokenizer import TOKENIZER_FILE
from engine.model.tokenizer import Tokenizer as OurTokenizer

_LLAMA_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_RULES: dict[str, Callable[[], list[pre_tokenizers.PreTokenizer]]] = {
    "gpt-2": lambda: [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)],
    # SmolLM: every digit is a token of its own, then GPT-2's rule.
    "smollm": lambda: [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)],
    "llama-bpe": lambda: [
        pre_tokenizers.Split(Regex(_LLAMA_3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ],
}
_ALIASES = {"llama3": "llama-bpe", "llama-v3": "llama-bpe"}

_SAMPLES = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.",
    "나는 바다를 보았다. 2026년 3월 1일, 맑음.\n\n“봄이다!”",
    'def f(x: int) -> str:\n\treturn f"{x:>8}"  # café, naïve, ½ 🙂\n    if x != 0x1F: pass\r\n',
)


def write_tokenizer(file: GgufFile, folder: Path) -> OurTokenizer:
    """Build tokenizer.json in `folder` and check it: ids of tokens, special tokens kept out of plain text, text that comes back.

    Raises LongshelfError("model_unsupported") for another kind of vocabulary, ("model_damaged") if a check fails.
    """
    kind, rule = file.get("tokenizer.ggml.model"), file.get("tokenizer.ggml.pre", "")
    rule = _ALIASES.get(rule, rule)
    if kind != "gpt2" or rule not in _RULES:
        name = f"{kind}, {rule or 'no rule'}"
        raise LongshelfError(
            "model_unsupported",
            f"{file.path.name} has a tokenizer of a kind that isn't here yet ({name}).",
            f"This version reads byte-level BPE with the rules {', '.join(_RULES)}.",
        )
    tokens = file.tokens()
    kinds: list[int] = file.get("tokenizer.ggml.token_type", [])
    merges: list[str] = file.get("tokenizer.ggml.merges", [])
    vocab = {token: i for i, token in enumerate(tokens)}
    if not tokens or len(vocab) != len(tokens) or len(kinds) != len(tokens):
        raise file.damaged("its vocabulary is empty, has a token twice, or lacks their kinds")
    try:
        # A merge is "left right"; a token holds no space, but the left one may be a single character that looks like one.
        pairs = [(merge[: (at := merge.index(" ", 1))], merge[at + 1 :]) for merge in merges]
        model = models.BPE(vocab=vocab, merges=pairs, ignore_merges=rule == "llama-bpe")
    except Exception as error:  # ValueError of ours, bare Exception of the library for a merge of unknown tokens
        raise file.damaged(f"its merges don't fit its vocabulary ({error})") from error
    built = Tokenizer(model)
    built.pre_tokenizer = pre_tokenizers.Sequence(_RULES[rule]())
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in _of_kind(tokens, kinds, gguf.TokenType.CONTROL)])
    built.add_tokens([AddedToken(t, special=False, normalized=False) for t in _of_kind(tokens, kinds, gguf.TokenType.USER_DEFINED)])
    # Written here, not by the library: its error for a full disk is a bare Exception.
    (folder / TOKENIZER_FILE).write_text(built.to_str(), encoding="utf-8", newline="")
    ours = OurTokenizer(folder)
    _check(file, ours, tokens)
    return ours


def _of_kind(tokens: list[str], kinds: list[int], kind: gguf.TokenType) -> list[str]:
    return [token for token, its_kind in zip(tokens, kinds, strict=True) if its_kind == kind]


def _check(file: GgufFile, ours: OurTokenizer, tokens: list[str]) -> None:
    if ours.vocab_size != len(tokens):
        raise file.damaged("its tokenizer doesn't give the ids that it lists")
    for special in sorted(ours.special_ids):
        name = tokens[special]
        if ours.encode_template(name) != [special]:
            raise file.damaged(f"its special token {name} isn't recognised")
        if not ours.special_ids.isdisjoint(ours.encode_ids(f"{name} {name}\n{name}")):
            raise file.damaged(f"plain text can become its special token {name}")
    for sample in _SAMPLES:
        if ours.decode(ours.encode_ids(sample)) != sample:
            raise file.damaged(f"its tokenizer doesn't give back {sample[:24]!r}")
