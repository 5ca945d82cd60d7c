"""What will be installed from a file or folder, once everything that can be refused has been refused: nothing is in memory by then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import LongshelfError
from engine.model.card import PACKS
from engine.model.config import ModelConfig
from engine.model.gguf_file import GgufFile
from engine.model.hf_folder import HfFolder
from engine.model.source import Source
from engine.model.template import PLAIN
from engine.model.tokenizer import Tokenizer

TEMPLATES = ("own", "plain")


@dataclass(frozen=True)
class Wishes:
    """What a person may ask for. template: "own", or "plain" for the simple one of ours; pack: how to pack plain matrices, None: not."""

    template: str = "own"
    pack: str | None = None

    def __post_init__(self) -> None:
        if self.template not in TEMPLATES:
            raise LongshelfError("usage", f"Templates are own or plain, not {self.template!r}.")
        if self.pack not in (None, *PACKS):
            raise LongshelfError("usage", f"Weights can't be packed as {self.pack!r}.", f"Choose one of {', '.join(PACKS)}.")


@dataclass(frozen=True)
class Plan:
    """A model that this version can use, and what will be written of it. name: of the file or folder, for messages.

    bos, eos: how the template's special tokens are written. write_tokenizer: puts the tokenizer's files into a folder and checks them.
    """

    name: str
    config: ModelConfig
    sources: list[Source]
    template: str
    bos: str
    eos: str
    license: str
    languages: tuple[str, ...]
    write_tokenizer: Callable[[Path], Tokenizer]

    @property
    def weights_bytes(self) -> int:
        return sum(source.info.bytes for source in self.sources)

    @property
    def weights(self) -> str:
        """The layout that most of the weights have: "bf16", "q4_1", …"""
        sizes: dict[str, int] = {}
        for source in self.sources:
            layout = source.info.name.rpartition(".")[2] if source.info.dtype == "U8" else "bf16"
            sizes[layout] = sizes.get(layout, 0) + source.info.bytes
        return max(sizes, key=lambda layout: sizes[layout])


def plan(path: Path, wishes: Wishes) -> Plan:
    """Raises LongshelfError: "not_found", "unreadable", "not_a_model", "model_unsupported", "model_damaged", "no_template", and of folders
    "lfs_pointer", "pickle_only", "missing_shard"."""
    return _of_folder(HfFolder(path), wishes) if path.is_dir() else _of_gguf(GgufFile(path), wishes)


def _of_gguf(file: GgufFile, wishes: Wishes) -> Plan:
    from engine.model.gguf_config import config_of
    from engine.model.gguf_import import sources
    from engine.model.gguf_tokenizer import write_tokenizer

    config, tokens = config_of(file), file.tokens()
    template = _template(wishes, file.get("tokenizer.chat_template"), file.path.name)
    _check_ids(config, len(tokens), file.path.name)
    bos, eos = (tokens[i] if i is not None and 0 <= i < len(tokens) else "" for i in (config.bos, file.end_of_text()))
    languages = file.get("general.languages", [])
    return Plan(
        name=file.path.name,
        config=config,
        sources=sources(file, config, wishes.pack),
        template=template,
        bos=bos,
        eos=eos,
        license=str(file.get("general.license", "")),
        languages=tuple(map(str, languages)) if isinstance(languages, list) else (),
        write_tokenizer=lambda folder: write_tokenizer(file, folder),
    )


def _of_folder(folder: HfFolder, wishes: Wishes) -> Plan:
    from engine.model.families import config_from_hf
    from engine.model.hf_import import sources, special_text
    from engine.model.hf_tokenizer import FolderTokenizer

    config = config_from_hf(folder.config, folder.generation)
    template = _template(wishes, folder.chat_template(), folder.path.name)
    tokenizer = FolderTokenizer(folder, {*config.eos, *(() if config.bos is None else (config.bos,))})
    _check_ids(config, tokenizer.size, folder.path.name)
    return Plan(
        name=folder.path.name,
        config=config,
        sources=sources(folder, config, wishes.pack),
        template=template,
        bos=special_text(folder, "bos_token"),
        eos=special_text(folder, "eos_token"),
        license=next(iter(folder.stated("license")), ""),
        languages=folder.stated("language"),
        write_tokenizer=tokenizer.write,
    )


def _template(wishes: Wishes, own: Any, name: str) -> str:
    if wishes.template == "plain":
        return PLAIN
    if not own or not isinstance(own, str):
        raise LongshelfError(
            "no_template",
            f"{name} has no chat template.",
            "Take an instruct (chat) version of the model, or add this one with --template plain.",
        )
    return own


def _check_ids(config: ModelConfig, tokens: int, name: str) -> None:
    """Raises LongshelfError("model_damaged") for a tokenizer that doesn't belong to the weights."""
    if tokens > config.vocab:
        raise LongshelfError(
            "model_damaged",
            f"The tokenizer of {name} has {tokens} tokens, its embeddings {config.vocab}: they don't belong together.",
            "Download the model again.",
        )
    if not config.eos or not {*config.eos, *(() if config.bos is None else (config.bos,))} <= {*range(tokens)}:
        raise LongshelfError(
            "model_damaged", f"{name} names no token that ends an answer, or one outside its vocabulary.", "Download the model again."
        )
