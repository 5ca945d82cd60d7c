"""A row of attention has the same bits whatever stands beside it; and the library that gives them, or its absence."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernels import cpu
from kernels.reference import Block
from tests.kernels.attention_case import MANY, Case, needs_library, off, two_sequences

FALLBACK = """
import io, sys, torch
from kernels import cpu
from kernels.reference import Block
case = torch.load(io.BytesIO(sys.stdin.buffer.read()))
blocks = [Block(*block) for block in case["blocks"]]
scores = torch.zeros(1, case["blocks"][0][0].shape[0], sum(block.k.shape[1] for block in blocks))
score_of = torch.zeros(len(case["positions"]), dtype=torch.int32)
out = cpu.attend(case["q"], case["positions"], cpu.BlockList(blocks), *case["facts"], scores, score_of)
answer = io.BytesIO()
torch.save({"native": cpu.native(), "sets": cpu.instruction_sets(), "out": out, "scores": scores}, answer)
sys.stdout.buffer.write(answer.getvalue())
"""


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
