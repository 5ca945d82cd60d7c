"""From a plan to the content of a model's folder.

What can be refused (family, packing, tokenizer, template, ids) is refused before the long part, the weights. Only those of the weights
that are being unpacked are in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import blake3

from engine.errors import LongshelfError, Stopped
from engine.model import safetensors_file
from engine.model.card import CARD_FILE, CHECKSUM, CONFIG_FILE, TEMPLATE_FILE, WEIGHTS_FILE, Card, Piece, Turns, checksum
from engine.model.config import ModelConfig
from engine.model.fetch import Progress, Stop
from engine.model.needs import memory_needed, require_memory
from engine.model.plan import Plan
from engine.model.safetensors_file import Run, TensorInfo
from engine.model.template import INSTRUCT, ChatTemplate, TemplatePieces
from engine.model.tokenizer import Tokenizer

PART_TOKENS = 2048
"""Small models answer better from parts of this size than from longer ones."""
GRID = 512


@dataclass(frozen=True)
class Origin:
    """What the card says about where a model came from; None: as the file itself states it."""

    name: str
    source: str
    trial: bool = False
    license: str | None = None
    languages: tuple[str, ...] | None = None


def build(planned: Plan, folder: Path, origin: Origin, progress: Progress, stop: Stop) -> None:
    """Fill `folder`: tokenizer, template, config, weights, and last the card. Raises LongshelfError, OSError (full disk), Stopped."""
    config = planned.config
    progress("tokenizer", 0, 1)
    tokenizer = planned.write_tokenizer(folder)
    pieces = ChatTemplate(planned.template, planned.bos, planned.eos).pieces()
    preamble, after_document, turns = _encoded(pieces, tokenizer)
    if not preamble.ids:
        raise LongshelfError("model_unsupported", f"The chat template of {planned.name} begins with the text itself.", INSTRUCT)
    part_tokens = _part_tokens(config)
    if len(preamble.ids) + part_tokens > config.window:
        raise LongshelfError("model_unsupported", f"The window of {planned.name} ({config.window} tokens) has no room for a document.")
    progress("tokenizer", 1, 1)

    write_text(folder / TEMPLATE_FILE, planned.template)
    write_json(folder / CONFIG_FILE, config.as_json())
    weights = folder / WEIGHTS_FILE
    digest = safetensors_file.write(weights, _watched(planned, progress, stop), [source.info for source in planned.sources])
    if safetensors_file.digest(weights) != digest:
        raise LongshelfError("model_damaged", "The weights don't read back as they were written.", "Check the disk, then install again.")
    card = Card(
        name=origin.name,
        source=origin.source,
        license=planned.license if origin.license is None else origin.license,
        languages=planned.languages if origin.languages is None else origin.languages,
        trial=origin.trial,
        family=config.family,
        window=config.window,
        weights=planned.weights,
        weights_digest=digest,
        weights_bytes=weights.stat().st_size,
        tokenizer_digest=tokenizer.digest,
        template_digest=blake3.blake3(planned.template.encode()).hexdigest(),
        bytes=sum(entry.stat().st_size for entry in folder.iterdir()),
        part_tokens=part_tokens,
        stop=config.eos,
        system=pieces.system,
        preamble=preamble,
        after_document=after_document,
        turns=turns,
        usual_bits=_usual_bits(folder, config, preamble, stop),
    )
    write_json(folder / CARD_FILE, card.as_json())


def _encoded(pieces: TemplatePieces, tokenizer: Tokenizer) -> tuple[Piece, Piece, Turns]:
    def piece(text: str) -> Piece:
        return Piece(text, tuple(tokenizer.encode_template(text, begins=False)))

    # The space before a document comes with the document, where the vocabulary writes one.
    opening = pieces.preamble.removesuffix(" ") if tokenizer.writes_space else pieces.preamble
    preamble = Piece(pieces.preamble, tuple(tokenizer.encode_template(opening)))
    turns = Turns(piece(pieces.user_open), piece(pieces.user_close_assistant_open), piece(pieces.assistant_close))
    return preamble, piece(pieces.after_document), turns


def _usual_bits(folder: Path, config: ModelConfig, preamble: Piece, stop: Stop) -> float | None:
    """None where the model doesn't fit into memory: it is installed all the same."""
    from engine.model.loss import usual  # torch

    def before_layer() -> None:
        if stop():
            raise Stopped

    try:
        require_memory(folder.name, memory_needed(config, (folder / WEIGHTS_FILE).stat().st_size, packed=True))
    except LongshelfError:
        return None
    return round(usual(folder, config, preamble.ids, before_layer), 4)


def _watched(planned: Plan, progress: Progress, stop: Stop) -> Iterator[tuple[TensorInfo, Iterator[Run]]]:
    """The tensors to write; tells how far they are and looks at `stop` between runs of rows."""
    done, total = 0, planned.weights_bytes

    def watched(runs: Iterator[Run]) -> Iterator[Run]:
        nonlocal done
        for run in runs:
            if stop():
                raise Stopped
            yield run
            done += run.nbytes
            progress("convert", done, total)

    for source in planned.sources:
        yield source.info, watched(source.runs())


def _part_tokens(config: ModelConfig) -> int:
    """Default size of a part: on the reading grid, and never more than half the window."""
    half = config.window // 2
    return min(PART_TOKENS, half - half % GRID or half)


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def write_json(path: Path, value: dict[str, Any]) -> None:
    write_text(path, json.dumps(value | {CHECKSUM: checksum(value)}, ensure_ascii=False, indent=1) + "\n")
