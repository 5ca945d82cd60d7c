"""llama.cpp as a peer, in a process of its own: two OpenMP runtimes in one process would wait on each other's cores.

`LlamaCpp` is the side of whoever measures; run as a program, this file is the peer. They speak lines of JSON: {"do": name, …} to
{"seconds": s} or {"error": text}. llama-cpp-python is called at its lowest level, which is llama.cpp's C interface.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.errors import LongshelfError

BATCH = 512


class LlamaCpp:
    """One model in llama.cpp. Every method gives the seconds that llama.cpp took, without the talk between the processes."""

    def __init__(self, gguf: Path, window: int, threads: int, flash: bool) -> None:
        """Raises LongshelfError("no_peer") where llama-cpp-python isn't installed or can't load the file."""
        if importlib.util.find_spec("llama_cpp") is None:
            raise LongshelfError("no_peer", "llama.cpp is not installed beside Longshelf.", "Run `make peers` in the checkout.")
        command = [sys.executable, "-m", __name__, str(gguf), str(window), str(threads), str(int(flash))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._ask("ready")

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()

    def read(self, ids: list[int]) -> float:
        """Forget everything, then prefill ids."""
        return self._ask("read", ids=ids)

    def decode(self, steps: int) -> float:
        """Decode so many tokens greedily behind what was read, then forget them again."""
        return self._ask("decode", steps=steps)

    def save(self, path: Path) -> float:
        """Write its state to a file."""
        return self._ask("save", path=str(path))

    def restore(self, path: Path, question: list[int]) -> float:
        """Forget everything, load the state from a file, prefill the question, choose the first token."""
        return self._ask("restore", path=str(path), question=question)

    def _ask(self, name: str, **values: Any) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": name, **values}) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
        except (OSError, ValueError) as error:
            code = self._process.poll()
            raise LongshelfError("no_peer", f"llama.cpp ended at {name!r} (exit {code}).", "Run `make peers` again.") from error
        if "error" in answer:
            raise LongshelfError("no_peer", f"llama.cpp failed at {name!r}: {answer['error']}.")
        return float(answer["seconds"])


class _Peer:
    """The other side."""

    def __init__(self, gguf: str, window: int, threads: int, flash: bool) -> None:
        import llama_cpp

        self._c = llama_cpp
        llama_cpp.llama_backend_init()
        of_model = llama_cpp.llama_model_default_params()
        of_model.use_extra_bufts = False  # repacking for AMX stops with an illegal instruction on some virtual machines
        self._model = llama_cpp.llama_model_load_from_file(gguf.encode(), of_model)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = window, BATCH, BATCH
        settings.n_threads = settings.n_threads_batch = threads
        settings.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        if not self._context:
            raise RuntimeError(f"it can't load {gguf}")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._length = 0

    def ready(self) -> None:
        pass

    def read(self, ids: list[int]) -> None:
        self._c.llama_memory_clear(self._memory, True)
        self._length = 0
        self._feed(ids)

    def decode(self, steps: int) -> None:
        start, token = self._length, 1
        for _ in range(steps):
            self._feed([token])
            token = self._best()
        self._c.llama_memory_seq_rm(self._memory, 0, start, -1)
        self._length = start

    def save(self, path: str) -> None:
        if not self._c.llama_state_save_file(self._context, path.encode(), (ctypes.c_int32 * 1)(), 0):
            raise RuntimeError(f"it can't write {path}")

    def restore(self, path: str, question: list[int]) -> None:
        self._c.llama_memory_clear(self._memory, True)
        count = ctypes.c_size_t()
        if not self._c.llama_state_load_file(self._context, path.encode(), (ctypes.c_int32 * 1)(), 1, ctypes.byref(count)):
            raise RuntimeError(f"it can't load {path}")
        self._feed(question)
        self._best()

    def _feed(self, ids: list[int]) -> None:
        for start in range(0, len(ids), BATCH):
            chunk = ids[start : start + BATCH]
            tokens = (self._c.llama_token * len(chunk))(*chunk)
            if self._c.llama_decode(self._context, self._c.llama_batch_get_one(tokens, len(chunk))):
                raise RuntimeError("it can't decode")
        self._length += len(ids)

    def _best(self) -> int:
        import numpy as np

        logits = self._c.llama_get_logits_ith(self._context, -1)
        return int(np.ctypeslib.as_array(logits, shape=(self._vocab,)).argmax())


def _serve(gguf: str, window: str, threads: str, flash: str) -> None:
    try:
        peer = _Peer(gguf, int(window), int(threads), flash == "1")
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    for line in sys.stdin:
        request = json.loads(line)
        work: Callable[..., None] = getattr(peer, request.pop("do"))
        started = time.perf_counter()
        try:
            work(**request)
            answer: dict[str, Any] = {"seconds": time.perf_counter() - started}
        except RuntimeError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
