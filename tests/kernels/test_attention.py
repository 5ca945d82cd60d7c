"""Attention over lists of blocks equals plain softmax attention in float64, whatever the shapes, the instruction set and the neighbours."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from kernels import cpu, reference
from kernels.reference import Block

KV_HEADS = 2
FEW, MANY = (5, 40)
"""Row counts on either side of the border between the two native ways of sharing out the work."""

FALLBACK = """
import io, sys, torch
from kernels import cpu
from kernels.reference import Block
case = torch.load(io.BytesIO(sys.stdin.buffer.read()))
blocks = [Block(*block) for block in case["blocks"]]
scores = torch.zeros(case["blocks"][0][0].shape[0], sum(block.k.shape[1] for block in blocks))
out = cpu.attend(case["q"], case["positions"], cpu.BlockList(blocks), *case["facts"], scores, (0, len(case["positions"])))
answer = io.BytesIO()
torch.save({"native": cpu.native(), "sets": cpu.instruction_sets(), "out": out, "scores": scores}, answer)
sys.stdout.buffer.write(answer.getvalue())
"""


class Case:
    """Packed rows and the blocks they read, with random content. scale makes attention neither flat nor a single spike."""

    def __init__(self, dim: int, group: int, positions: Sequence[int], dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.dim, self.group, self.dtype = dim, group, dtype
        self.positions = torch.tensor(positions, dtype=torch.int32)
        self.q = torch.randn(len(positions), KV_HEADS * group, dim, generator=self.random) * 3
        self.scale, self.softcap, self.window = dim**-0.5, 0.0, 0
        self.blocks: list[Block] = []

    def block(self, tokens: int, position: int, rows: tuple[int, int] | None = None) -> Case:
        """Add a block of its own memory; rows: those that read it, all by default."""
        k, v = (torch.randn(KV_HEADS, tokens, self.dim, generator=self.random).to(self.dtype) for _ in range(2))
        self.blocks.append(Block(k, v, position, *(rows or (0, len(self.positions)))))
        return self

    def attend(self, rows: slice = slice(None)) -> torch.Tensor:
        """What the native library (or its fallback) gives for these rows alone, whose blocks all rows must share."""
        count = len(self.positions[rows])
        blocks = [Block(block.k, block.v, block.position, 0, count) for block in self.blocks] if rows != slice(None) else self.blocks
        q, positions = self.q[rows].contiguous(), self.positions[rows].contiguous()
        return cpu.attend(q, positions, cpu.BlockList(blocks), self.scale, self.softcap, self.window)

    def scored(self, rows: tuple[int, int], into: torch.Tensor | None = None) -> torch.Tensor:
        """The scores [Hkv, keys] of the native library (or its fallback) for these rows, added to `into`."""
        scores = torch.zeros(KV_HEADS, sum(block.k.shape[1] for block in self.blocks)) if into is None else into
        cpu.attend(self.q, self.positions, cpu.BlockList(self.blocks), self.scale, self.softcap, self.window, scores, rows)
        return scores

    def reference(self, scores: torch.Tensor | None = None, rows: tuple[int, int] = (0, 0)) -> tuple[torch.Tensor, torch.Tensor]:
        return reference.attend(self.q, self.positions, self.blocks, self.scale, self.softcap, self.window, scores, rows)

    def truth(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(out [N, Hq, D], lse [N, Hq], probabilities [N, Hq, keys]) in float64."""
        rows, heads, dim = self.q.shape
        k, v = (torch.cat([getattr(block, name) for block in self.blocks], 1).double() for name in "kv")
        seen = torch.cat([self._seen(block) for block in self.blocks], 1)
        logits = torch.einsum("nhgd,hkd->nhgk", self.q.double().view(rows, KV_HEADS, self.group, dim), k) * self.scale
        if self.softcap:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        logits = logits.masked_fill(~seen[:, None, None], -torch.inf)
        probabilities = logits.softmax(-1).nan_to_num(0.0)  # where a row sees nothing
        out = torch.einsum("nhgk,hkd->nhgd", probabilities, v)
        return out.reshape(rows, heads, dim), logits.logsumexp(-1).view(rows, heads), probabilities.view(rows, heads, -1)

    def _seen(self, block: Block) -> torch.Tensor:
        """[N, keys of the block]: which rows may see which keys."""
        rows = torch.arange(len(self.positions))[:, None]
        reads = (block.row_begin <= rows) & (rows < block.row_end)
        keys, own = torch.arange(block.position, block.position + block.k.shape[1]), self.positions[:, None]
        return reads & (keys <= own) & ((keys > own - self.window) if self.window else True)


def one_sequence(dim: int, group: int, rows: int, dtype: torch.dtype = torch.bfloat16) -> Case:
    """The last `rows` tokens of a chain of three ragged segments and a tail that is half full."""
    case = Case(dim, group, range(330, 330 + rows), dtype)
    return case.block(257, 0).block(1, 257).block(70, 258).block(90, 328)


def two_sequences(rows: int) -> Case:
    """Two sequences of `rows` rows each on one shared segment; the second has a segment more, and each a tail."""
    case = Case(64, 3, [*range(300, 300 + rows), *range(340, 340 + rows)])
    case.block(300, 0, (0, 2 * rows)).block(40, 300, (rows, 2 * rows))
    return case.block(64, 300, (0, rows)).block(64, 340, (rows, 2 * rows))


@pytest.fixture(autouse=True)
def _as_it_was_afterwards() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    if sets := cpu.instruction_sets():
        cpu.use_instruction_set(sets[-1])


@pytest.fixture(params=cpu.instruction_sets() or ["torch"])
def isa(request: pytest.FixtureRequest) -> str:
    """Each instruction set in turn; "torch" where there is no library, so that the same holds of the fallback."""
    if request.param != "torch":
        cpu.use_instruction_set(request.param)
    return str(request.param)


def native_out(case: Case) -> torch.Tensor:
    return case.attend()


def reference_out(case: Case) -> torch.Tensor:
    return case.reference()[0]


def off(ours: torch.Tensor, truth: torch.Tensor) -> float:
    return float((ours.double() - truth).abs().max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("dim", [16, 64, 80, 96, 128, 256])
def test_every_head_size_equals_plain_attention(isa: str, dim: int, rows: int, dtype: torch.dtype) -> None:
    case = one_sequence(dim, 3, rows, dtype)
    assert off(case.attend(), case.truth()[0]) < 2e-5


@pytest.mark.parametrize("rows", [1, FEW, MANY])
@pytest.mark.parametrize("group", range(1, 9))
def test_every_group_of_query_heads_equals_plain_attention(isa: str, group: int, rows: int) -> None:
    case = one_sequence(64, group, rows)
    assert off(case.attend(), case.truth()[0]) < 2e-5


@pytest.mark.parametrize("attend", [native_out, reference_out], ids=["native", "reference"])
@pytest.mark.parametrize("dim", [8, 24, 272])
def test_a_head_size_without_a_native_kernel_equals_plain_attention(dim: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = one_sequence(dim, 3, FEW)
    assert off(attend(case), case.truth()[0]) < 2e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("group", [1, 3, 8])
def test_the_reference_equals_plain_attention(group: int, dtype: torch.dtype) -> None:
    case = one_sequence(64, group, FEW, dtype)
    assert off(reference_out(case), case.truth()[0]) < 2e-5


def test_the_reference_gives_the_logarithm_of_the_denominator() -> None:
    case = two_sequences(4)
    assert off(case.reference()[1], case.truth()[1]) < 2e-5


def test_the_reference_computes_in_float64_where_queries_are() -> None:
    case = one_sequence(64, 3, FEW)
    out = reference.attend(case.q.double(), case.positions, case.blocks, case.scale)[0]
    assert off(out, case.truth()[0]) < 1e-13


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [255, 256, 257], [3, 512, 2, 1000], [64] * 20], ids=str)
def test_ragged_blocks_equal_plain_attention(isa: str, lengths: list[int], rows: int) -> None:
    total = sum(lengths)
    case = Case(32, 2, [total - 1] * rows)
    position = 0
    for length in lengths:
        case.block(length, position)
        position += length
    assert off(case.attend(), case.truth()[0]) < 2e-5


@pytest.mark.parametrize("attend", [native_out, reference_out], ids=["native", "reference"])
@pytest.mark.parametrize("rows", [4, 20])
def test_sequences_that_share_a_block_read_only_their_own(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = two_sequences(rows)
    assert off(attend(case), case.truth()[0]) < 2e-5


@pytest.mark.parametrize("rows", [4, 20])
def test_a_later_sequence_may_stand_at_earlier_positions(isa: str, rows: int) -> None:
    """Its rows don't see all of a shared block, and those of the first do."""
    case = Case(64, 3, [*range(400, 400 + rows), *range(10, 10 + rows)])
    case.block(300, 0, (0, 2 * rows)).block(200, 300, (0, 2 * rows))
    assert off(case.attend(), case.truth()[0]) < 2e-5


@pytest.mark.parametrize("attend", [native_out, reference_out], ids=["native", "reference"])
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_what_stands_behind_a_row_changes_nothing(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    """Causal rows over a tail that is listed with its whole capacity."""
    case = one_sequence(64, 3, rows)
    before = attend(case)
    tail = case.blocks[-1]
    unwritten = int(case.positions[-1]) + 1 - tail.position
    tail.k[:, unwritten:] = 3e4
    tail.v[:, unwritten:] = -3e4
    assert torch.equal(attend(case), before)


@pytest.mark.parametrize("attend", [native_out, reference_out], ids=["native", "reference"])
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_row_that_sees_nothing_gets_zeros(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = Case(64, 3, [-1, *range(1, rows)]).block(10, 0).block(300, 10)
    out = attend(case)
    assert torch.equal(out[0], torch.zeros_like(out[0]))
    assert off(out, case.truth()[0]) < 2e-5


def test_a_row_that_sees_nothing_has_no_denominator() -> None:
    case = Case(64, 3, [-1, 4]).block(10, 0)
    lse = case.reference()[1]
    assert torch.isneginf(lse[0]).all()
    assert torch.isfinite(lse[1]).all()


def test_without_blocks_every_row_gets_zeros() -> None:
    case = Case(64, 3, [0, 1])
    assert torch.equal(case.attend(), torch.zeros_like(case.q))


def test_blocks_that_are_pieces_of_larger_memory_are_read_in_place(isa: str) -> None:
    case = one_sequence(64, 3, FEW)
    expected = case.attend()
    roomy = []
    for block in case.blocks:
        memory = torch.full((2, KV_HEADS, block.k.shape[1] + 13, 64), 7.0, dtype=block.k.dtype)
        memory[0, :, 5:-8], memory[1, :, 5:-8] = block.k, block.v
        roomy.append(Block(memory[0, :, 5:-8], memory[1, :, 5:-8], block.position, block.row_begin, block.row_end))
    case.blocks = roomy
    assert torch.equal(case.attend(), expected)


def test_very_large_logits_stay_finite(isa: str) -> None:
    case = one_sequence(64, 3, FEW, torch.float32)
    case.q *= 1e4
    assert off(case.attend(), case.truth()[0]) < 1e-3


# ---- probabilities ----


def summed(case: Case, rows: tuple[int, int]) -> torch.Tensor:
    """[Hkv, keys] float64: the true probabilities of these rows, summed over the heads of each KV head."""
    chosen = case.truth()[2][rows[0] : rows[1]]
    return chosen.view(len(chosen), KV_HEADS, case.group, -1).sum((0, 2))


@pytest.mark.parametrize("rows", [(0, 5), (4, 5), (1, 3)], ids=str)
@pytest.mark.parametrize("dim", [16, 80, 24])
def test_scores_are_the_probabilities_of_the_chosen_rows(isa: str, dim: int, rows: tuple[int, int]) -> None:
    case = one_sequence(dim, 3, FEW)
    assert off(case.scored(rows), summed(case, rows)) < 1e-5


def test_scores_of_many_rows_are_the_probabilities_of_the_chosen_rows(isa: str) -> None:
    case = one_sequence(64, 2, MANY)
    assert off(case.scored((0, MANY)), summed(case, (0, MANY))) < 5e-5


@pytest.mark.parametrize("rows", [(0, 8), (2, 6)], ids=str)
def test_scores_of_several_sequences_stand_at_the_keys_they_read(isa: str, rows: tuple[int, int]) -> None:
    case = two_sequences(4)
    assert off(case.scored(rows), summed(case, rows)) < 1e-5


def test_the_reference_gives_the_same_scores() -> None:
    case = two_sequences(4)
    scores = torch.zeros(KV_HEADS, 468)
    case.reference(scores, (2, 6))
    assert off(scores, summed(case, (2, 6))) < 1e-5


def test_scores_are_added_to_what_was_there(isa: str) -> None:
    case = one_sequence(64, 3, FEW)
    scores = torch.ones(KV_HEADS, 418)
    for _ in range(2):
        case.scored((0, FEW), scores)
    assert off(scores, 1 + 2 * summed(case, (0, FEW))) < 2e-5


def test_asking_for_scores_changes_no_bit_of_the_answer(isa: str) -> None:
    case = one_sequence(64, 3, FEW)
    scores, blocks = torch.zeros(KV_HEADS, 418), cpu.BlockList(case.blocks)
    assert torch.equal(cpu.attend(case.q, case.positions, blocks, case.scale, scores=scores, score_rows=(0, 1)), case.attend())


def test_a_row_that_sees_nothing_scores_nothing(isa: str) -> None:
    case = Case(64, 3, [-1, 4]).block(10, 0)
    scores = case.scored((0, 1))
    assert torch.equal(scores, torch.zeros_like(scores))


# ---- soft caps and sliding windows ----

attends = pytest.mark.parametrize("attend", [native_out, reference_out], ids=["native", "reference"])


@attends
@pytest.mark.parametrize("rows", [1, FEW, MANY])
@pytest.mark.parametrize("softcap", [0.5, 5.0, 50.0])
def test_a_cap_bends_every_logit(isa: str, softcap: float, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = one_sequence(64, 3, rows)
    uncapped = attend(case)
    case.softcap = softcap
    assert off(attend(case), case.truth()[0]) < 2e-5
    assert (attend(case) - uncapped).abs().max() > 1e-2


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_cap_holds_very_large_logits(isa: str, rows: int) -> None:
    case = one_sequence(64, 3, rows, torch.float32)
    case.q *= 1e4
    case.softcap = 2.0
    assert off(case.attend(), case.truth()[0]) < 2e-5


@attends
@pytest.mark.parametrize("rows", [1, FEW, MANY])
@pytest.mark.parametrize("window", [1, 2, 16, 71, 256, 257, 300, 5000])
def test_a_window_hides_what_is_further_back(isa: str, window: int, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = one_sequence(64, 3, rows)
    case.window = window
    assert off(attend(case), case.truth()[0]) < 2e-5


@attends
@pytest.mark.parametrize("rows", [4, 20])
def test_sequences_at_different_positions_have_their_own_windows(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = Case(64, 3, [*range(900, 900 + rows), *range(10, 10 + rows)])
    case.block(700, 0, (0, 2 * rows)).block(300, 700, (0, 2 * rows))
    case.window, case.softcap = 37, 4.0
    assert off(attend(case), case.truth()[0]) < 2e-5


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_what_no_row_sees_is_not_read(isa: str, rows: int) -> None:
    case = Case(64, 3, range(1500, 1500 + rows)).block(1024, 0).block(600, 1024)
    case.window = 100
    expected = case.attend()
    case.blocks[0].k[:] = case.blocks[0].v[:] = torch.nan
    case.blocks[1].k[:, :256] = case.blocks[1].v[:, :256] = torch.nan
    assert torch.equal(case.attend(), expected)


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_scores_are_those_of_capped_logits_within_the_window(isa: str, rows: int) -> None:
    case = one_sequence(64, 2, rows)
    case.window, case.softcap = 90, 3.0
    scores = case.scored((0, rows))
    assert off(scores, summed(case, (0, rows))) < 5e-5
    ours = torch.zeros_like(scores)
    case.reference(ours, (0, rows))
    assert off(scores, ours.double()) < 5e-5


# ---- bits ----

needs_library = pytest.mark.skipif(cpu.native() is None, reason="the native library isn't built")


def rows_of_one_chain(rows: int) -> Case:
    """Rows of one sequence that is being verified: consecutive positions, a chain of two segments and a tail."""
    return Case(64, 3, range(1500, 1500 + rows)).block(1024, 0).block(470, 1024).block(64, 1494)


@needs_library
@pytest.mark.parametrize("window", [0, 10, 700])
@pytest.mark.parametrize("rows", range(2, 17))
def test_a_row_has_the_same_bits_alone_and_among_others(isa: str, rows: int, window: int) -> None:
    case = rows_of_one_chain(rows)
    case.window, case.softcap = window, 5.0 if window else 0.0
    together = case.attend()
    for row in range(rows):
        assert torch.equal(together[row], case.attend(slice(row, row + 1))[0])


@needs_library
def test_a_row_has_the_same_bits_beside_another_sequence(isa: str) -> None:
    case = two_sequences(4)
    together = case.attend()
    own = Case(64, 3, range(340, 344))
    own.q = case.q[4:]
    own.blocks = [Block(block.k, block.v, block.position, 0, 4) for block in case.blocks if block.row_end == 8]
    assert torch.equal(own.attend(), together[4:])


@needs_library
@pytest.mark.parametrize("rows", [1, 7, 16, MANY])
def test_the_number_of_threads_changes_no_bit(isa: str, rows: int) -> None:
    case = rows_of_one_chain(rows)
    answers = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        answers.append(case.attend())
    assert torch.equal(*answers)


@needs_library
@pytest.mark.parametrize("rows", [1, 7, MANY])
def test_the_number_of_threads_changes_no_bit_of_the_scores(isa: str, rows: int) -> None:
    case = rows_of_one_chain(rows)
    answers = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        answers.append(case.scored((0, rows)))
    assert torch.equal(*answers)


# ---- the library and its absence ----


@needs_library
def test_the_widest_instruction_set_is_in_use() -> None:
    assert cpu.native() == cpu.instruction_sets()[-1]
    assert cpu.instruction_sets()[0] == "baseline"


def test_an_instruction_set_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no sve9"):
        cpu.use_instruction_set("sve9")


def test_a_block_that_cannot_be_read_in_place_is_refused() -> None:
    k = torch.zeros(2, 8, 64)
    with pytest.raises(ValueError, match="strides"):
        cpu.BlockList([Block(k, torch.zeros(2, 64, 8).transpose(1, 2), 0, 0, 1)])


def test_without_the_library_answers_and_scores_are_the_same_within_rounding() -> None:
    case = two_sequences(4)
    case.softcap, case.window = 4.0, 99
    out, scores = case.attend(), case.scored((0, 8))
    given = io.BytesIO()
    blocks = [(block.k, block.v, block.position, block.row_begin, block.row_end) for block in case.blocks]
    facts = (case.scale, case.softcap, case.window)
    torch.save({"q": case.q, "positions": case.positions, "blocks": blocks, "facts": facts}, given)
    done = subprocess.run(
        [sys.executable, "-c", FALLBACK],
        input=given.getvalue(),
        stdout=subprocess.PIPE,
        env=os.environ | {"LONGSHELF_NATIVE": "0"},
        cwd=Path(cpu.__file__).parents[2],
        check=True,
    )
    answer = torch.load(io.BytesIO(done.stdout))
    assert answer["native"] is None
    assert answer["sets"] == []
    assert off(answer["out"], out.double()) < 2e-5
    assert off(answer["scores"], scores.double()) < 2e-5
