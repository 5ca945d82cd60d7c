"""The tokenizer files of a Hugging Face folder, put in order for us: its tokenizer.json, or its tokenizer.model and what was added."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from engine.errors import LongshelfError
from engine.model.hf_folder import NEEDED, HfFolder, damaged
from engine.model.json_vocabulary import in_order
from engine.model.sentencepiece_vocabulary import NO_SPACE_BEFORE, added_json, piece_count
from engine.model.tokenizer import ADDED_FILE, SENTENCEPIECE_FILE, TOKENIZER_FILE, Tokenizer
from engine.model.tokenizer_check import check


class FolderTokenizer:
    """The tokenizer of `folder`; specials: ids that end an answer or begin a text, which plain text must not become.

    size: one more than its highest id.
    """

    def __init__(self, folder: HfFolder, specials: set[int]) -> None:
        """Raises LongshelfError: "not_a_model" if there is none, "model_damaged"."""
        self._folder = folder
        self._stored = folder.json(TOKENIZER_FILE)
        self._proto = folder.path / SENTENCEPIECE_FILE
        if self._stored:
            try:
                names = {str(token["content"]) for token in self._stored.get("added_tokens", []) if token["id"] in specials}
                self._stored = in_order(self._stored, names)
                self.size = 1 + max(_ids(self._stored))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise self._damaged(f"its vocabulary is in no known order ({error})") from error
        elif self._proto.is_file():
            try:
                self._added = _added(folder, specials)
                self.size = max([piece_count(self._proto), *(index + 1 for index, _ in self._added.values())])
            except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise self._damaged(f"its tokenizer.model or the tokens added to it can't be read ({error})") from error
        else:
            raise LongshelfError("not_a_model", f"There is no tokenizer in {folder.path}.", NEEDED)

    def write(self, into: Path) -> Tokenizer:
        """Put the files into a folder and check what they do. Raises LongshelfError("model_damaged") or ("model_unsupported")."""
        if self._stored:
            (into / TOKENIZER_FILE).write_text(json.dumps(self._stored, ensure_ascii=False), encoding="utf-8", newline="")
        else:
            shutil.copyfile(self._proto, into / SENTENCEPIECE_FILE)
            if self._folder.tokenizer_config.get("add_prefix_space") is False:
                with (into / SENTENCEPIECE_FILE).open("ab") as file:
                    file.write(NO_SPACE_BEFORE)
            spaced = self._folder.tokenizer_config.get("legacy") is not False
            (into / ADDED_FILE).write_text(json.dumps(added_json(self._added, spaced)), encoding="utf-8")
        tokenizer = Tokenizer(into)
        check(tokenizer, self._damaged)
        return tokenizer

    def _damaged(self, why: str) -> LongshelfError:
        return damaged(self._folder.path, why)


def _ids(stored: dict[str, Any]) -> list[int]:
    vocabulary = stored["model"]["vocab"]
    own = range(len(vocabulary)) if isinstance(vocabulary, list) else map(int, vocabulary.values())
    return [*own, *(int(token["id"]) for token in stored["added_tokens"])]


def _added(folder: HfFolder, specials: set[int]) -> dict[str, tuple[int, bool]]:
    """(id, whether it is special) of the tokens that the folder's JSON files name."""
    named = {str(text): (int(index), False) for text, index in folder.json("added_tokens.json").items()}
    for index, token in folder.tokenizer_config.get("added_tokens_decoder", {}).items():
        named[str(token["content"])] = (int(index), bool(token.get("special", False)))
    return {text: (index, special or index in specials) for text, (index, special) in named.items()}
