"""A GGUF file becomes an installed model, or the home stays as it was and the error says why."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from engine.errors import LongshelfError, Stopped
from engine.home import Home
from engine.model.install import fetch, install_model
from engine.model.installed import Models
from engine.model.safetensors_file import digest, to_bf16
from engine.model.weights import state
from tests.engine.model import tiny_gguf
from tests.engine.model.tiny_gguf import PACKED


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").open()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tiny_gguf.write(tmp_path / "Tiny Model Q8.gguf")


def refusal(home: Home, path: Path) -> LongshelfError:
    """The error of an install that must fail and leave nothing."""
    with pytest.raises(LongshelfError) as caught:
        install_model(home, path)
    assert [entry.name for entry in home.models.iterdir() if entry.name != ".lock"] == []
    return caught.value


def stored(home: Home, name: str) -> dict[str, torch.Tensor]:
    return state(home.models / name / "model.safetensors")


def test_an_installed_model_can_be_opened_and_says_what_it_is(home: Home, source: Path) -> None:
    name = install_model(home, source)
    model = Models(home).open()
    assert name == model.name == "tiny-model-q8"
    assert (model.config.layers, model.config.heads, model.config.kv_heads, model.config.head_dim) == (2, 4, 2, 16)
    assert (model.config.vocab, model.config.window, model.config.rms_eps, model.config.tied) == (len(tiny_gguf.TOKENS), 256, 1e-5, True)
    assert (model.card.license, model.card.languages, model.card.trial, model.card.stop) == ("mit", ("en", "ko"), False, (0, 2))
    assert model.card.part_tokens == 128
    assert model.card.bytes + len((model.folder / "model.json").read_bytes()) == sum(file.stat().st_size for file in model.folder.iterdir())


@pytest.mark.parametrize("packing", [PACKED.F32, PACKED.F16, PACKED.BF16, PACKED.Q8_0, PACKED.Q4_0, PACKED.Q4_1, PACKED.Q5_0])
def test_every_tensor_comes_out_as_it_was_packed_in_the_order_of_training(
    tmp_path: Path, home: Home, packing: gguf.GGMLQuantizationType
) -> None:
    values = tiny_gguf.tensors(seed=3, tied=False)
    found = stored(home, install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", values, packing)))
    assert len(found) == len(values)
    for name, key in {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "output": "lm_head",
        "blk.1.attn_norm": "model.layers.1.input_layernorm",
        "blk.1.attn_q": "model.layers.1.self_attn.q_proj",
        "blk.1.attn_k": "model.layers.1.self_attn.k_proj",
        "blk.1.attn_v": "model.layers.1.self_attn.v_proj",
        "blk.1.attn_output": "model.layers.1.self_attn.o_proj",
        "blk.1.ffn_norm": "model.layers.1.post_attention_layernorm",
        "blk.1.ffn_gate": "model.layers.1.mlp.gate_proj",
        "blk.1.ffn_up": "model.layers.1.mlp.up_proj",
        "blk.0.ffn_down": "model.layers.0.mlp.down_proj",
    }.items():
        value = values[f"{name}.weight"]
        if value.ndim > 1:  # rows are packed one by one, so their order doesn't matter here
            value = gguf.quants.dequantize(gguf.quants.quantize(value, packing), packing)
        truth = torch.from_numpy(value)
        assert torch.equal(found[f"{key}.weight"], truth if value.ndim == 1 else truth.to(torch.bfloat16)), name


@pytest.mark.parametrize("packing", [PACKED.Q8_0, PACKED.Q4_0, PACKED.Q4_1, PACKED.Q5_0, PACKED.Q5_1])
def test_packed_rows_stay_packed_on_the_disk(tmp_path: Path, home: Home, packing: gguf.GGMLQuantizationType) -> None:
    name = install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", packing=packing))
    model = Models(home).open(name)
    assert model.card.weights == packing.name.lower()
    elements, size = gguf.GGML_QUANT_SIZES[packing]
    numbers = sum(value.size for value in tiny_gguf.tensors().values() if value.ndim == 2)
    assert numbers * size // elements < model.card.weights_bytes < numbers * size // elements + 8000


def test_float32_is_rounded_to_the_nearest_bf16_with_ties_to_even() -> None:
    values = np.concatenate(
        [np.random.default_rng(0).standard_normal(4096, dtype=np.float32), np.float32([1 + 2**-8, 1 + 3 * 2**-8, -0.0])]
    )
    assert torch.equal(torch.from_numpy(to_bf16(values).view(np.int16)).view(torch.bfloat16), torch.from_numpy(values).to(torch.bfloat16))


def test_the_weights_digest_follows_the_content_and_not_the_file_it_came_from(tmp_path: Path, home: Home) -> None:
    same = [install_model(home, tiny_gguf.write(tmp_path / f"{n}.gguf", general__license=n)) for n in ("a", "b")]
    changed = tiny_gguf.tensors()
    changed["blk.1.ffn_up.weight"][0, 0] += 1
    other = install_model(home, tiny_gguf.write(tmp_path / "c.gguf", changed))
    digests = [Models(home).open(name).card.weights_digest for name in (*same, other)]
    assert digests[0] == digests[1] != digests[2]
    assert digest(home.models / other / "model.safetensors") == digests[2]


def test_the_template_is_cut_into_pieces_that_put_together_are_its_own_text(home: Home, source: Path) -> None:
    card = Models(home).open(install_model(home, source)).card
    assert card.preamble.text == "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n"
    assert card.after_document.text == card.turns.user_close_assistant_open.text == "<|im_end|>\n<|im_start|>assistant\n"
    assert (card.turns.assistant_close.text, card.turns.user_open.text) == ("<|im_end|>\n", "<|im_start|>user\n")
    assert card.system == "Be brief."
    assert card.preamble.ids[0] == 1
    assert card.turns.assistant_close.ids[0] == 2


def test_a_template_without_a_system_message_of_its_own_says_so(tmp_path: Path, home: Home) -> None:
    turns = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    bare = turns + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    card = Models(home).open(install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", template=bare))).card
    assert card.system is None
    assert card.preamble.text == "<|im_start|>user\n"


def test_the_closed_thought_of_a_thinking_model_opens_every_answer(tmp_path: Path, home: Home) -> None:
    turns = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    opening = "<|im_start|>assistant\n{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    template = turns + "{% if add_generation_prompt %}" + opening + "{% endif %}"
    card = Models(home).open(install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", template=template))).card
    assert card.after_document.text == "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def test_a_date_in_the_template_is_fixed(tmp_path: Path, home: Home) -> None:
    template = "{{ strftime_now('%Y-%m-%d') }}" + tiny_gguf.TEMPLATE
    card = Models(home).open(install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", template=template))).card
    assert card.preamble.text.startswith("2024-07-26<|im_start|>")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (None, "no chat template"),
        ("{{ messages", "can't be used"),
        ("{{ raise_exception('only tools') }}", "only tools"),
        ("{{ messages[0].content.__class__.__mro__ }}", "can't be used"),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", "each message once"),
    ],
)
def test_a_template_that_can_not_serve_is_refused(tmp_path: Path, home: Home, template: str | None, why: str) -> None:
    error = refusal(home, tiny_gguf.write(tmp_path / "tiny.gguf", template=template))
    assert error.kind == ("model_unsupported" if template else "no_template")
    assert why in error.message


def test_rotation_divisors_of_a_file_are_kept(tmp_path: Path, home: Home) -> None:
    values = tiny_gguf.tensors() | {"rope_freqs.weight": np.float32([1, 1, 1, 1, 2, 4, 8, 8])}
    config = Models(home).open(install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", values))).config
    assert config.rope == {"rope_type": "divisors", "divisors": [1, 1, 1, 1, 2, 4, 8, 8]}


def test_another_family_is_named(tmp_path: Path, home: Home) -> None:
    error = refusal(home, tiny_gguf.write(tmp_path / "m.gguf", family="mamba"))
    assert (error.kind, "'mamba'" in error.message, "Gemma 3" in error.hint) == ("model_unsupported", True, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"llama__expert_count": 8},
        {"llama__rope__scaling__type": "ntk"},
        {"llama__rope__dimension_count": 8},
        {"tokenizer__ggml__model": "bert"},
        {"tokenizer__ggml__pre": "unheard-of"},
    ],
)
def test_a_variant_that_would_be_computed_wrongly_is_refused(tmp_path: Path, home: Home, fields: dict[str, object]) -> None:
    assert refusal(home, tiny_gguf.write(tmp_path / "m.gguf", **fields)).kind == "model_unsupported"


def test_tensors_that_the_decoder_does_not_know_are_refused(tmp_path: Path, home: Home) -> None:
    values = tiny_gguf.tensors() | {"blk.0.attn_q.bias": np.zeros(64, np.float32)}
    error = refusal(home, tiny_gguf.write(tmp_path / "m.gguf", values))
    assert (error.kind, "blk.0.attn_q.bias" in error.message) == ("model_unsupported", True)


@pytest.mark.parametrize("broken", ["missing", "misshapen", "infinite"])
def test_wrong_tensors_are_damage(tmp_path: Path, home: Home, broken: str) -> None:
    values = tiny_gguf.tensors()
    if broken == "missing":
        del values["blk.1.ffn_up.weight"]
    elif broken == "misshapen":
        values["blk.1.ffn_up.weight"] = values["blk.1.ffn_up.weight"][1:]
    else:
        values["blk.1.ffn_up.weight"][5, 5] = np.inf
    error = refusal(home, tiny_gguf.write(tmp_path / "m.gguf", values))
    assert (error.kind, "blk.1.ffn_up.weight" in error.message) == ("model_damaged", True)


def test_what_is_no_gguf_is_told_apart_from_what_is_missing(tmp_path: Path, home: Home) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert refusal(home, tmp_path / "notes.txt").kind == "not_a_model"
    assert refusal(home, tmp_path).kind == "not_a_model"
    assert refusal(home, tmp_path / "nowhere.gguf").kind == "not_found"


def test_a_cut_or_flipped_file_never_raises_anything_but_a_named_error(tmp_path: Path, home: Home, source: Path) -> None:
    whole = source.read_bytes()
    metadata = len(whole) - sum(tensor.nbytes for tensor in tiny_gguf.tensors().values())
    draw = np.random.default_rng(7)
    broken, kinds = tmp_path / "broken.gguf", set()
    for _ in range(60):
        content = bytearray(whole[: draw.integers(4, len(whole))] if draw.random() < 0.4 else whole)
        for at in draw.integers(4, metadata, 4):
            content[min(at, len(content) - 1)] ^= 1 << int(draw.integers(8))
        broken.write_bytes(content)
        try:
            install_model(home, broken, "broken")
            Models(home).remove("broken")  # the flips hit what doesn't matter, such as the licence
        except LongshelfError as error:
            kinds.add(error.kind)
    assert {"model_damaged"} <= kinds <= {"model_damaged", "model_unsupported", "not_a_model"}


def test_a_huge_count_in_the_header_is_refused_at_once(tmp_path: Path, home: Home) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60) + bytes(64))
    assert refusal(home, path).kind == "model_damaged"


def test_stop_ends_an_install_and_leaves_nothing(home: Home, source: Path) -> None:
    seen: list[str] = []
    with pytest.raises(Stopped):
        install_model(home, source, progress=lambda stage, done, total: seen.append(stage), stop=lambda: "convert" in seen)
    assert Models(home).names() == []
    assert list(home.models.glob(".install-*")) == []


def test_progress_reaches_the_whole(home: Home, source: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    install_model(home, source, progress=lambda stage, done, total: seen.__setitem__(stage, (done, total)))
    assert list(seen) == ["tokenizer", "convert", "done"]
    assert all(done == total > 0 for done, total in seen.values())


def test_what_a_killed_install_left_is_swept(home: Home, source: Path) -> None:
    leftover = home.models / ".install-abc" / "tiny"
    leftover.mkdir(parents=True)
    (leftover / "model.json").write_text("{}")
    assert Models(home).names() == []
    install_model(home, source)
    assert not leftover.exists()


def test_a_name_is_given_once(home: Home, source: Path) -> None:
    install_model(home, source, "mine")
    with pytest.raises(LongshelfError, match="already installed") as caught:
        install_model(home, source, "mine")
    assert caught.value.kind == "exists"


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "current", "smollm2", "x" * 200])
def test_a_name_that_is_no_plain_folder_name_is_refused(home: Home, source: Path, name: str) -> None:
    with pytest.raises(LongshelfError) as caught:
        install_model(home, source, name)
    assert caught.value.kind == "bad_name"


def test_only_the_default_model_can_be_fetched_by_name(home: Home) -> None:
    with pytest.raises(LongshelfError) as caught:
        fetch(home, "gpt-5")
    assert caught.value.kind == "unknown_model"
