"""What lies where: weights, chains and tails on the disk, in memory or on a device, decided here alone and from measured sizes.

Without a GPU there is one place, memory. On a GPU lie the weights, the tail of what is read and, as far as there is room with a
margin, the chain; what of a chain finds no room stays in memory, where the processor reads it, and only queries and partial results
cross. "interpret" is that same arrangement on a machine without a GPU: the device is Triton's interpreter, and chains stay in memory.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from engine.attention.exact import Exact
from engine.attention.held import Held
from engine.attention.placed import Placed
from engine.errors import LongshelfError
from engine.model.config import ModelConfig

DEVICES = ("auto", "cpu", "cuda", "interpret")
"""What can be asked for; auto is cuda where there is a GPU that can be used, else cpu."""

KV_PLACES = ("auto", "ram", "device")
"""Where chains lie: auto, as much on the device as fits; ram; or all on the device."""

MARGIN = 0.06
"""Share of a device's memory that stays free: fragments, other programs, what libraries keep for themselves."""

CONTEXT_BYTES = 1 << 30
"""What a CUDA context, loaded kernels and the libraries' own buffers take."""

_COMPILED = ("TRITON_CACHE_DIR", "CUDA_CACHE_PATH")  # where Triton and the driver keep what they compile, else in the user's folder
_named: dict[str, str] = {}  # of these, what `keep_compiled_in` set

_ROWS = 512  # of a chunk of reading
_FEW = 16


@dataclass(frozen=True)
class Device:
    """kind: "cpu", "cuda" or "interpret"; name: of the hardware; where: as torch has it."""

    kind: str
    name: str
    where: torch.device

    @property
    def apart(self) -> bool:
        """Whether it has kernels of its own, and memory that isn't this process's (with the interpreter: as if it weren't)."""
        return self.kind != "cpu"

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes, measured now."""
        if self.kind != "cuda":
            return memory_here()
        free, total = torch.cuda.mem_get_info(self.where)
        unused = torch.cuda.memory_reserved(self.where) - torch.cuda.memory_allocated(self.where)
        return free + unused, total


CPU = Device("cpu", "processor", torch.device("cpu"))


def device(asked: str = "auto") -> Device:
    """The device of that kind. Raises LongshelfError("usage") for no kind, ("no_device") where this machine hasn't got it."""
    if asked not in DEVICES:
        raise LongshelfError("usage", f"There is no device {asked!r}.", f"There are {', '.join(DEVICES)}.")
    if asked == "cpu" or (asked == "auto" and _lacking("cuda")):
        return CPU
    kind = "cuda" if asked == "auto" else asked
    if lacking := _lacking(kind):
        raise LongshelfError("no_device", f"--device {kind} can't be used: {lacking}", "Use --device cpu.")
    if kind == "interpret":
        os.environ["TRITON_INTERPRET"] = "1"  # read when the first kernel is loaded
        return Device(kind, "Triton's interpreter", torch.device("cpu"))
    os.environ.pop("TRITON_INTERPRET", None)
    where = torch.device("cuda", torch.cuda.current_device())
    return Device(kind, torch.cuda.get_device_name(where), where)


def keep_compiled_in(folder: Path) -> None:
    """Where what is compiled for a GPU is kept from now on, unless the user has named a place. To be called before the first use of one."""
    for name in _COMPILED:
        if os.environ.get(name) == _named.get(name):
            os.environ[name] = _named[name] = str(folder)


def require_device(asked: str) -> None:
    """Raises what `device` raises, so before anything is done."""
    device(asked)


def _lacking(kind: str) -> str | None:
    """Why this machine has no such device; None where it has."""
    if kind == "cuda" and not torch.cuda.is_available():
        built = "" if torch.version.cuda else " (this build of torch is for the CPU alone)"
        return f"there is no NVIDIA GPU that torch can use{built}."
    if importlib.util.find_spec("triton") is None:
        return "the package triton is not installed."
    language = sys.modules.get("kernels.gpu.language")
    if language is not None and bool(language.INTERPRETED) != (kind == "interpret"):
        return f"this process has loaded its kernels for the {'interpreter' if language.INTERPRETED else 'GPU'} already."
    return None


def memory_here() -> tuple[int, int]:
    """(available, total) bytes of this machine's memory."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = {name: int(value.split()[0]) * 1024 for name, value in (line.split(":", 1) for line in lines) if "kB" in value}
        return found["MemAvailable"], found["MemTotal"]
    except (OSError, KeyError):
        import psutil

        memory = psutil.virtual_memory()
        return int(memory.available), int(memory.total)


@dataclass(frozen=True)
class Plan:
    """Bytes on the device. working: what reading and decoding take beside the weights; room: for copies of chains."""

    weights: int
    working: int
    room: int


def plan(device: Device, config: ModelConfig, weights_bytes: int, packed: bool, kv: str = "auto") -> Plan:
    """What lies on a device before anything is loaded there. Raises LongshelfError("not_enough_memory") with the numbers."""
    free, total = device.memory()
    working = working_bytes(config, packed) + int(MARGIN * total) + (CONTEXT_BYTES if device.kind == "cuda" else 0)
    room = free - weights_bytes - working
    if room < 0 and device.kind == "cuda":
        needed = weights_bytes + working
        raise LongshelfError(
            "not_enough_memory",
            f"The model takes {needed / 1e9:.1f} GB of GPU memory; {free / 1e9:.1f} of {total / 1e9:.1f} GB are free on {device.name}.",
            "Use --device cpu, or a smaller model.",
        )
    return Plan(weights_bytes, working, 0 if kv == "ram" or (kv == "auto" and device.kind != "cuda") else max(0, room))


def working_bytes(config: ModelConfig, packed: bool) -> int:
    """Of a chunk of reading: activations, the logits of its attention, its own KV, some rows' logits, an unpacked matrix."""
    c = config
    wide = 3 * c.intermediate + 2 * c.hidden + 3 * (c.heads + 2 * c.kv_heads) * c.head_dim
    attention = 3 * c.heads * _ROWS * 1024 * 4
    largest = 2 * max(c.vocab * c.hidden, c.intermediate * c.hidden) if packed else 0
    return _ROWS * wide * 4 + attention + 2 * 1024 * c.kv_bytes_per_token + 2 * _FEW * c.vocab * 4 + 5 * largest


class Placement:
    """Where one model's things lie.

    asked: one of DEVICES; auto is the processor where the GPU is too small. kv: one of KV_PLACES. Raises what `device` and `plan` raise.
    """

    def __init__(self, asked: str, config: ModelConfig, weights_bytes: int, packed: bool = False, kv: str = "auto") -> None:
        self.asked, self.device, self.config = asked, device(asked), config
        self.plan = Plan(weights_bytes, 0, 0)
        try:
            if self.device.apart:
                self.plan = plan(self.device, config, weights_bytes, packed, kv)
        except LongshelfError:
            if asked != "auto":
                raise
            self.device = CPU

    @property
    def weights_on(self) -> torch.device | None:
        """The device on which the weights lie; None: here."""
        return self.device.where if self.device.apart else None

    @cached_property
    def held(self) -> Held:
        """The copies of chains on the device."""
        return Held(self.device.where, self.config.layers, self.plan.room)

    def exact(self, watch_layers: Sequence[int] = ()) -> Exact:
        """What reads everything of a sequence where it lies."""
        if not self.device.apart:
            return Exact(self.config, watch_layers)
        return Placed(self.config, self.held, watch_layers)
