"""A model of every family goes from a folder to an answer; the default one gives the same from its GGUF and from a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engine import settings
from engine.home import Home
from engine.model.install import install_model
from engine.model.installed import Models
from engine.model.weights import state
from engine.shelf import Call, Shelf
from tests.engine.model import tiny_folder
from tests.engine.model.tiny import FAMILIES

TEXT = "".join(f"The lamp of house {n} is kept by the and the {n * 7}. 등대 {n}.\n" for n in range(60))
VOCABULARIES = {"Mistral": "tokenizer.model", "Gemma 3": "tokenizer.model", "Phi-3": "tokenizer.json"}
"""What such models come with; the others have bytes."""


def answered(home: Home, document: str | None, path: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """(id, what adding gave, what asking gave) in an engine of its own."""
    shelf = Shelf(home)
    try:
        added = shelf.call("documents.add", {"paths": [str(path)]}, Call())["documents"][0]
        asked = {"documents": [document or added["id"]], "question": "Who keeps the lamp?", "max_tokens": 8}
        return added["id"], added, shelf.call("ask", asked, Call())
    finally:
        shelf.close()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_a_family_reads_answers_and_finds_its_memory_again(tmp_path: Path, family: str) -> None:
    home = Home(tmp_path / "home").open()
    settings.change(home, {"threads": 1})
    install_model(home, tiny_folder.write(tmp_path / "tiny", family, VOCABULARIES.get(family, "bytes")))
    path = tmp_path / "lamps.txt"
    path.write_text(TEXT, encoding="utf-8")
    document, added, first = answered(home, None, path)
    assert (added["state"], first["generated_tokens"], first["document_tokens_prefilled"]) == ("ready", 8, 0)
    _, again, second = answered(home, document, path)
    assert (again["segments_computed"], second["document_tokens_prefilled"]) == (0, 0)
    assert second["token_ids"] == first["token_ids"]


def exported(model_home: Home, folder: Path) -> Path:
    """The default model as a folder of the Hugging Face kind."""
    model = Models(model_home).open()
    folder.mkdir()
    save_file({name: tensor.contiguous() for name, tensor in state(model.weights).items()}, folder / "model.safetensors")
    c = model.config
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": c.vocab,
        "hidden_size": c.hidden,
        "intermediate_size": c.intermediate,
        "num_hidden_layers": c.layers,
        "num_attention_heads": c.heads,
        "num_key_value_heads": c.kv_heads,
        "rope_theta": c.rope_theta,
        "rms_norm_eps": c.rms_eps,
        "max_position_embeddings": c.window,
        "tie_word_embeddings": c.tied,
        "bos_token_id": c.bos,
        "eos_token_id": list(c.eos),
    }
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copyfile(model.folder / "tokenizer.json", folder / "tokenizer.json")
    shutil.copyfile(model.folder / "chat_template.jinja", folder / "chat_template.jinja")
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}))
    return folder


@pytest.mark.journey
def test_the_default_model_answers_the_same_tokens_from_its_gguf_and_from_a_folder(fresh_model_home: Home, tmp_path: Path) -> None:
    import resources

    home = fresh_model_home
    packed = Models(home).open()
    plain = Models(home).open(install_model(home, exported(home, tmp_path / "exported"), "plain"))
    assert plain.config == packed.config
    assert (plain.card.weights, plain.card.preamble, plain.card.turns) == ("bf16", packed.card.preamble, packed.card.turns)
    ours, theirs = state(packed.weights), state(plain.weights)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    tokens = []
    for name in (packed.name, "plain"):
        Models(home).use(name)
        _, _, asked = answered(home, None, resources.handbook("en"))
        tokens.append(asked["token_ids"])
    assert tokens[0] == tokens[1]
