"""Dense attention of few rows over a list of KV blocks, on the GPU; its meaning is `kernels.reference.attend`.

Flash decoding (Dao and others 2023; Dao 2022, arXiv:2205.14135): keys are cut into chunks, counted from the start of their block,
each chunk gives each row a partial result, and `merging` puts those together. One launch serves all blocks, through a table of addresses.
Query heads stand as rows of their KV head, in tiles of 16, which is what tensor cores multiply at a time. Neither chunks nor tiles
depend on how many rows there are, so a row's result doesn't either.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from kernels.gpu.language import inlined, largest, product, smallest, steps, summed
from kernels.gpu.merging import merge
from kernels.reference import Block

CHUNK = 256
"""Keys that a program reads."""
TILE = 16
"""Rows (token × query head of the group) that a program serves."""
_DTYPES = {torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}
_FIELDS: tl.constexpr = tl.constexpr(8)  # of a chunk in the table, in the order in which `_chunks` writes them
_ALIGNMENT = 16  # bytes


@inlined
def soften(logits, softcap):
    """softcap * tanh(logits / softcap), or the logits where softcap is 0."""
    capped = softcap - 2.0 * softcap / (tl.exp(2.0 * logits / tl.where(softcap > 0.0, softcap, 1.0)) + 1.0)
    return tl.where(softcap > 0.0, capped, logits)


@inlined
def add_keys(top, total, mean, logits, v):
    """One step of softmax over a row of keys: the largest logit so far, the sum of weights and the weighted sum of values."""
    higher = tl.maximum(top, largest(logits, 1))
    finite = tl.where(higher == float("-inf"), 0.0, higher)
    weights = tl.exp(logits - finite[:, None])
    old = tl.exp(top - finite)
    return higher, total * old + summed(weights, 1), product(weights, v, mean * old[:, None])


@inlined
def store_part(out, lse, at, rows_used, top, total, mean, DIM: tl.constexpr, WIDE: tl.constexpr):
    """Write (mean of values, log of the mass) of rows that saw something to their places `at`."""
    seen = rows_used & (total > 0.0)
    dims = tl.arange(0, WIDE)
    whole = tl.where(seen, total, 1.0)
    tl.store(out + at[:, None] * DIM + dims[None, :], mean / whole[:, None], mask=seen[:, None] & (dims < DIM)[None, :])
    tl.store(lse + at, top + tl.log(whole), mask=seen)


@triton.jit
def attend_kernel(
    q, positions, table, slots, outs, lses, scale, softcap, window, rows, kv_heads,
    DTYPE: tl.constexpr, GROUP: tl.constexpr, DIM: tl.constexpr, WIDE: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    chunk, head = tl.program_id(0), tl.program_id(1)
    entry = table + chunk.to(tl.int64) * _FIELDS
    k = tl.multiple_of(tl.load(entry).to(tl.pointer_type(DTYPE)), 16)
    v = tl.multiple_of(tl.load(entry + 1).to(tl.pointer_type(DTYPE)), 16)
    keys, first = tl.load(entry + 2).to(tl.int32), tl.load(entry + 3).to(tl.int32)
    row_begin, row_end = tl.load(entry + 4), tl.load(entry + 5)
    head_stride, token_stride = tl.multiple_of(tl.load(entry + 6), 8), tl.multiple_of(tl.load(entry + 7), 8)
    k += head * head_stride
    v += head * head_stride

    packed = tl.program_id(2) * TILE + tl.arange(0, TILE)
    row, member = packed // GROUP, packed % GROUP
    reads = (row < rows) & (row >= row_begin) & (row < row_end)
    own = tl.load(positions + row, mask=reads, other=-1) - first  # the last key that is seen, counted within the chunk
    earliest = tl.where(window > 0, own - window, -1)  # the last one that isn't any more
    begin = tl.maximum(smallest(tl.where(reads, earliest, keys)) + 1, 0) // KEYS * KEYS
    end = tl.minimum(largest(tl.where(reads, own, -1)) + 1, keys)

    dims = tl.arange(0, WIDE)
    place = row.to(tl.int64) * kv_heads * GROUP + head * GROUP + member
    query = tl.load(q + place[:, None] * DIM + dims[None, :], mask=reads[:, None] & (dims < DIM)[None, :], other=0.0)
    top = tl.full([TILE], float("-inf"), tl.float32)
    total, mean = tl.full([TILE], 0.0, tl.float32), tl.full([TILE, WIDE], 0.0, tl.float32)
    for start in steps(begin, end, KEYS):
        at = start + tl.arange(0, KEYS)
        inside = (at < end)[:, None] & (dims < DIM)[None, :]
        offsets = at.to(tl.int64)[:, None] * token_stride + dims[None, :]
        key_tile = tl.load(k + offsets, mask=inside, other=0.0)
        logits = soften(product(query, tl.trans(key_tile), tl.full([TILE, KEYS], 0.0, tl.float32)) * scale, softcap)
        seen = reads[:, None] & (at[None, :] <= own[:, None]) & (at[None, :] > earliest[:, None]) & (at < end)[None, :]
        value_tile = tl.load(v + offsets, mask=inside, other=0.0)
        top, total, mean = add_keys(top, total, mean, tl.where(seen, logits, float("-inf")), value_tile)
    slot = tl.load(slots + chunk.to(tl.int64) * rows + row, mask=reads, other=0)
    store_part(outs, lses, slot.to(tl.int64) * rows * kv_heads * GROUP + place, reads, top, total, mean, DIM, WIDE)


class BlockList:
    """The blocks that packed rows read in one layer, ready for many calls: the table of their chunks is made once.

    blocks: in order of position for each row, of one dtype, on one device, each token's row aligned to 16 bytes. Kept alive.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        for block in blocks:
            _check(block, blocks[0])
        self._chunks = [entry for block in blocks for entry in _chunks(block)]
        device = blocks[0].k.device if blocks else None
        self.table = torch.tensor(self._chunks, dtype=torch.int64, device=device).view(-1, _FIELDS.value)
        self._slots: dict[int, tuple[int, torch.Tensor]] = {}

    def __len__(self) -> int:
        """The number of chunks."""
        return len(self._chunks)

    def slots(self, rows: int) -> tuple[int, torch.Tensor]:
        """The most chunks that one of so many rows reads, and [chunks, rows] int32: which of a row's own chunks each one is."""
        if rows not in self._slots:
            chunks, row = torch.tensor(self._chunks), torch.arange(rows)
            reads = (chunks[:, 4:5] <= row) & (row < chunks[:, 5:6])
            self._slots[rows] = int(reads.sum(0).max()), (reads.cumsum(0) - 1).int().to(self.table.device)
        return self._slots[rows]


def _check(block: Block, first: Block) -> None:
    if block.k.stride() != block.v.stride() or block.k.stride(2) != 1 or not block.k.dtype == block.v.dtype == first.k.dtype:
        raise ValueError("K and V of all blocks need one dtype, those of a block equal strides, and contiguous rows")
    size = block.k.element_size()
    if any(number % _ALIGNMENT for number in (block.k.data_ptr(), block.v.data_ptr(), *(size * each for each in block.k.stride()[:2]))):
        raise ValueError(f"rows of K and V need to start at multiples of {_ALIGNMENT} bytes")


def _chunks(block: Block) -> list[tuple[int, ...]]:
    """Address of K, of V, keys, position of the first, first row, end row, and strides between heads and between tokens in numbers."""
    size, (heads, tokens, _) = block.k.stride(1) * block.k.element_size(), block.k.stride()
    return [
        (
            block.k.data_ptr() + at * size,
            block.v.data_ptr() + at * size,
            min(CHUNK, block.k.shape[1] - at),
            block.position + at,
            block.row_begin,
            block.row_end,
            heads,
            tokens,
        )
        for at in range(0, block.k.shape[1], CHUNK)
    ]


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    blocks: BlockList | Sequence[Block],
    scale: float,
    softcap: float = 0.0,
    window: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out [n, Hq, D], lse [n, Hq]) float32, meaning as `reference.attend`.

    q: [n, Hq, D] float32 contiguous; positions: [n] int32; K and V bf16 or float32. Meant for 1 to 16 rows.
    """
    listed = blocks if isinstance(blocks, BlockList) else BlockList(blocks)
    rows, heads, dim = q.shape
    if not len(listed) or not rows:
        return torch.zeros_like(q), q.new_full((rows, heads), -torch.inf)
    kv_heads, dtype = listed.blocks[0].k.shape[0], listed.blocks[0].k.dtype
    group, wide = heads // kv_heads, triton.next_power_of_2(dim)
    parts, slots = listed.slots(rows)
    outs, lses = q.new_empty(parts, rows, heads, dim), q.new_full((parts, rows, heads), -torch.inf)
    attend_kernel[(len(listed), kv_heads, triton.cdiv(rows * group, TILE))](
        q, positions, listed.table, slots, outs, lses, scale, softcap, window, rows, kv_heads,
        DTYPE=_DTYPES[dtype], GROUP=group, DIM=dim, WIDE=wide, TILE=TILE, KEYS=keys_at_a_time(wide, dtype),
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return merge(outs, lses)


def keys_at_a_time(wide: int, dtype: torch.dtype) -> int:
    """So many that two steps of K and V fit into the shared memory of every architecture, and float32 products into registers."""
    return max(16, min(64, (8192 if dtype == torch.bfloat16 else 2048) // wide))
