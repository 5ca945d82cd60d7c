"""A Hugging Face folder becomes an installed model, or the home stays as it was and the error says why."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import gguf
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import LongshelfError
from engine.home import Home
from engine.model.config import ModelConfig
from engine.model.install import install_model
from engine.model.installed import InstalledModel, Models
from engine.model.plan import Wishes
from engine.model.safetensors_file import to_bf16
from engine.model.weights import state
from tests.engine.model import tiny_folder
from tests.engine.model.tiny import FAMILIES, installed


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").open()


def add(home: Home, path: Path, wishes: Wishes | None = None) -> InstalledModel:
    return Models(home).open(install_model(home, path, wishes=wishes or Wishes()))


def refusal(home: Home, path: Path) -> LongshelfError:
    """The error of an install that must fail and leave nothing."""
    with pytest.raises(LongshelfError) as caught:
        install_model(home, path)
    assert [entry.name for entry in home.models.iterdir() if entry.name != ".lock"] == []
    assert caught.value.hint
    return caught.value


def expected(folder: Path, config: ModelConfig) -> dict[str, torch.Tensor]:
    """What an installed model of this folder should hold, from transformers' own file."""
    stored: dict[str, torch.Tensor] = {}
    for file in folder.glob("*.safetensors"):
        stored |= {name: tensor.float() for name, tensor in load_file(file).items()}
    return {name: t if t.ndim == 1 else t.to(torch.bfloat16) for name, t in installed(config, stored).items()}


def assert_same(found: dict[str, torch.Tensor], truth: dict[str, torch.Tensor]) -> None:
    assert found.keys() == truth.keys()
    for name, tensor in truth.items():
        assert found[name].dtype == tensor.dtype, name
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_of_a_family_stands_under_our_name(tmp_path: Path, home: Home, family: str) -> None:
    model = add(home, tiny_folder.write(tmp_path / "Tiny", family))
    assert_same(state(model.weights), expected(tmp_path / "Tiny", model.config))
    assert (model.name, model.card.weights, model.card.family) == ("tiny", "bf16", model.config.family)
    model.verify()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_numbers_of_any_kind_become_the_nearest_bf16_and_norms_keep_theirs(tmp_path: Path, home: Home, dtype: torch.dtype) -> None:
    model = add(home, tiny_folder.write(tmp_path / "tiny", dtype=dtype))
    assert_same(state(model.weights), expected(tmp_path / "tiny", model.config))


def test_shards_are_read_together(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny", shard="100KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    model = add(home, folder)
    assert_same(state(model.weights), expected(folder, model.config))
    (folder / "model.safetensors.index.json").unlink()  # their names alone say that they belong together
    assert Models(home).open(install_model(home, folder, "again")).card.weights_digest == model.card.weights_digest


@pytest.mark.parametrize("pack", ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1"])
def test_matrices_are_packed_on_request(tmp_path: Path, home: Home, pack: str) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    plain, packed = add(home, folder), Models(home).open(install_model(home, folder, "packed", wishes=Wishes(pack=pack)))
    assert packed.card.weights in (pack, "q8_0")  # the embeddings, the larger part of so small a model, keep 8 bits
    truth, found = state(plain.weights), state(packed.weights)
    for name, tensor in truth.items():
        kind = gguf.GGMLQuantizationType["Q8_0" if "embed" in name or "lm_head" in name else pack.upper()]
        if tensor.ndim > 1:
            values = gguf.quants.dequantize(gguf.quants.quantize(tensor.float().numpy(), kind), kind)
            tensor = torch.from_numpy(values).to(torch.bfloat16)
        assert torch.equal(found[name], tensor), name


def test_what_a_readme_and_the_config_say_is_on_the_card(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\nlanguage:\n- en\n- ko\ntags:\n- chat\n---\n# Tiny\n")
    card = add(home, folder).card
    assert (card.license, card.languages, card.window, card.stop, card.system) == ("apache-2.0", ("en", "ko"), 4096, (2,), "Be brief.")
    assert card.preamble.ids[0] == 1


@pytest.mark.parametrize("vocabulary", ["tokenizer.json", "tokenizer.model"])
def test_the_space_before_a_document_comes_with_the_document(tmp_path: Path, home: Home, vocabulary: str) -> None:
    model = add(home, tiny_folder.write(tmp_path / "tiny", vocabulary=vocabulary))
    tokenizer = model.tokenizer()
    assert model.card.preamble.text == "<s>[INST] "
    ids = [*model.card.preamble.ids, *tokenizer.encode_ids("나는 it")]
    assert ids == tokenizer.encode_template("<s>[INST] 나는 it")


def test_a_template_file_goes_before_the_one_in_the_tokenizers_config(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
    (folder / "chat_template.jinja").write_text(template)
    assert add(home, folder).card.preamble.text == "[user] "


def test_one_of_several_templates_is_the_default(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    stored = json.loads((folder / "tokenizer_config.json").read_text())
    stored["chat_template"] = [{"name": "tool_use", "template": "{{ x"}, {"name": "default", "template": stored["chat_template"]}]
    (folder / "tokenizer_config.json").write_text(json.dumps(stored))
    assert add(home, folder).card.system == "Be brief."


def test_a_model_without_a_template_can_be_given_a_plain_one(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny", template=None)
    error = refusal(home, folder)
    assert (error.kind, "--template plain" in error.hint) == ("no_template", True)
    card = add(home, folder, Wishes(template="plain")).card
    assert card.preamble.text == "<|im_start|>Text:\n\n"
    assert card.after_document.text == card.turns.user_close_assistant_open.text == "\n\nAnswer:\n\n"
    assert (card.turns.assistant_close.text, card.turns.user_open.text) == ("<|im_end|>\n\n", "Question:\n\n")


def test_a_missing_shard_is_named(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny", shard="100KB")
    gone = sorted(folder.glob("*.safetensors"))[1]
    gone.unlink()
    error = refusal(home, folder)
    assert (error.kind, gone.name in error.message) == ("missing_shard", True)


def test_a_pointer_in_place_of_a_file_is_told_apart(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5000000000\n")
    error = refusal(home, folder)
    assert (error.kind, "model.safetensors" in error.message, "git lfs pull" in error.hint) == ("lfs_pointer", True, True)


def test_pickled_weights_are_refused(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    error = refusal(home, folder)
    assert (error.kind, "safetensors" in error.hint) == ("pickle_only", True)


@pytest.mark.parametrize("keep", [4, 500, 0.9])
def test_a_truncated_file_is_named(tmp_path: Path, home: Home, keep: float) -> None:
    file = tiny_folder.write(tmp_path / "tiny") / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: int(keep if keep > 1 else keep * len(content))])
    error = refusal(home, tmp_path / "tiny")
    assert (error.kind, "model.safetensors" in error.message, "cut short" in error.message) == ("model_damaged", True, True)


def test_an_unknown_architecture_is_named_and_its_own_code_never_asked(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny", model_type="mystery", architectures=["MysteryForCausalLM"])
    stored = json.loads((folder / "config.json").read_text()) | {"auto_map": {"AutoModelForCausalLM": "modeling.Model"}}
    (folder / "config.json").write_text(json.dumps(stored))
    (folder / "modeling.py").write_text("raise SystemExit('run')")
    error = refusal(home, folder)
    assert (error.kind, "MysteryForCausalLM" in error.message) == ("model_unsupported", True)


def test_a_tokenizer_that_does_not_fit_the_embeddings_is_refused(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    other = tiny_folder.write(tmp_path / "other", vocabulary="tokenizer.json")
    (folder / "tokenizer.json").write_bytes((other / "tokenizer.json").read_bytes())
    error = refusal(home, folder)
    assert (error.kind, "600" in error.message, "320" in error.message) == ("model_damaged", True, True)


def test_a_tensor_that_is_missing_strange_or_not_finite_is_named(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    whole, name = load_file(folder / "model.safetensors"), "model.layers.1.mlp.up_proj.weight"
    broken = whole[name].clone()
    broken[3, 4] = torch.inf
    for changed, kind in (
        ({key: value for key, value in whole.items() if key != name}, "model_damaged"),
        (whole | {name: broken}, "model_damaged"),
        (whole | {name: whole[name][1:].clone()}, "model_damaged"),
        (whole | {f"{name[:-6]}scale": torch.zeros(3)}, "model_unsupported"),
        (whole | {name: whole[name].to(torch.int8)}, "model_unsupported"),
    ):
        save_file(changed, folder / "model.safetensors")
        error = refusal(home, folder)
        assert (error.kind, "up_proj" in error.message) == (kind, True)


def test_a_folder_that_is_no_model_says_what_is_missing(tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    assert refusal(home, folder).kind == "not_a_model"
    (folder / "Some.gguf").write_bytes(b"GGUF")
    assert "Some.gguf" in refusal(home, folder).hint
    tiny_folder.write(folder)
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer" in refusal(home, folder).message


def test_a_broken_json_file_is_damage(tmp_path: Path, home: Home) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    for name in ("config.json", "tokenizer_config.json", "tokenizer.json"):
        kept = (folder / name).read_bytes()
        for content in (b"{", b"[1]", b'{"model": 3}'):
            (folder / name).write_bytes(content)
            assert refusal(home, folder).kind in ("model_damaged", "model_unsupported", "no_template"), (name, content)
        (folder / name).write_bytes(kept)


def test_a_full_disk_is_told_with_numbers(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_folder.write(tmp_path / "tiny")
    monkeypatch.setattr("engine.model.install.shutil.disk_usage", lambda path: SimpleNamespace(free=200_000))
    error = refusal(home, folder)
    assert (error.kind, "0 MB free" in error.message, "1 MB are needed" in error.message) == ("disk_full", True, True)


def test_rows_are_streamed(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr("engine.model.source.RUN", 960)
    monkeypatch.setattr("engine.model.source.to_bf16", lambda run: sizes.append(run.size) or to_bf16(run))
    model = add(home, tiny_folder.write(tmp_path / "tiny"))
    assert max(sizes) == 960
    assert_same(state(model.weights), expected(tmp_path / "tiny", model.config))
