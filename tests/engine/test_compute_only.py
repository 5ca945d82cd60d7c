"""A machine that only computes, with torch, numpy and safetensors and nothing else of ours, can read, decode and sample."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ABSENT = (
    "PySide6",
    "blake3",
    "charset_normalizer",
    "gguf",
    "huggingface_hub",
    "jinja2",
    "markdown_it",
    "pathspec",
    "platformdirs",
    "psutil",
    "pygments",
    "sentencepiece",
    "sqlite3",
    "sqlite_utils",
    "tokenizers",
    "transformers",
    "xxhash",
)
REPO = Path(__file__).parents[2]


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process in which those modules can't be imported."""
    hidden = f"import sys\nsys.modules |= dict.fromkeys({ABSENT})\n"
    return subprocess.run([sys.executable, "-c", hidden + code, *arguments], check=False, capture_output=True, text=True, cwd=REPO)


MODEL = """
import torch
from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.weights import build

torch.manual_seed(0)
c = ModelConfig("llama", 2, 64, 4, 2, 16, 96, 256, 1e4, 1e-5, True, 1024, None, (1,))
sizes = {"q_proj": (64, 64), "k_proj": (32, 64), "v_proj": (32, 64), "o_proj": (64, 64)}
sizes |= {"gate_proj": (96, 64), "up_proj": (96, 64), "down_proj": (64, 96), "embed_tokens": (256, 64)}
def tensor(name):
    *_, module, kind = name.split(".")
    if kind != "weight":
        return None
    return torch.ones(64) if "norm" in module else torch.randn(sizes[module]) / 8
"""


def test_reading_decoding_and_sampling_need_no_package_but_torch_numpy_and_safetensors() -> None:
    ran = run(
        MODEL
        + """
import engine.answering.modes, engine.evaluation.contexts, kernels.cpu
from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory, moved
from engine.attention.sampled import Sampled
from engine.attention.sequence import Rows, Sequence, Tail
from engine.retrieval.fitting import Moments, fit, layout_for
from engine.retrieval.sketches import Sketch, make

decoder = Decoder(c, build(tensor, c, torch.bfloat16))
exact = Exact(c)
moments = Moments(c, exact, 4)
read = moments.read(decoder, list(range(200)))
projections = fit(moments, layout_for(c.head_dim))
segment = moved(c, InMemory(read.tail.kv), 0)
sequence = Sequence([segment], Tail(c, decoder.dtype, 8))
sampled = Sampled(exact, projections, {id(segment): Sketch(list(make(segment, projections)))}, 20, 1)
for token in (5, 6, 7):
    rows = Rows([(sequence, 1)])
    logits = decoder.forward(torch.tensor([token]), rows, sampled, slice(None))
    rows.advance()
assert logits.isfinite().all() and sampled.keys_read_fraction < 1
print("read", sequence.length)
"""
    )
    assert (ran.returncode, ran.stdout) == (0, "read 203\n"), ran.stderr


def test_with_triton_a_device_decodes_there_too() -> None:
    pytest.importorskip("triton")
    ran = run(
        MODEL
        + """
from engine.attention.sequence import Sequence, Tail
from engine.model.prefill import prefill
from engine.placement import Placement

placement = Placement("cuda" if torch.cuda.is_available() else "interpret", c, 0)
decoder = Decoder(c, build(tensor, c, torch.bfloat16, placement.weights_on))
sequence = Sequence([], Tail(c, decoder.dtype, 8))
exact = placement.exact()
prefill(decoder, sequence, list(range(20)), exact)
assert prefill(decoder, sequence, [5], exact).isfinite().all()
print("read", sequence.length)
"""
    )
    assert (ran.returncode, ran.stdout) == (0, "read 21\n"), ran.stderr
