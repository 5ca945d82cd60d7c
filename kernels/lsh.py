"""Locality-sensitive hashing of keys, as in MagicPIG (Chen et al. 2024, arXiv:2410.16179): what it means, in plain torch.

A vector's code in a table is made of the signs of its products with random directions (SimHash, Charikar 2002). A key is drawn if its
code is the query's in at least two of the tables, and its logit gets -ln u on top, u the probability of that over the directions: it
depends on nothing but the angle between the two.

Keys are hashed less the centre of their KV head; queries are hashed, and all logits made, as they are. So the centre changes only
which keys are likely, and blocks with different centres are parts of one softmax.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from kernels.reference import Block
from kernels.sampling import is_certain

MOST_BITS = 11
"""Of a code: so that a table's buckets are counted out in one pass, and are few beside its keys."""
MOST_TABLES = 1024
MOST_KEYS = 65_535
"""Of one index: what 16 bits number."""
PANEL = 16
"""Directions that stand together, as a processor takes them."""

_LEAST_AGREEMENT = 1e-6
"""Of one bit, for keys opposite to the query: they are never met, and log u stays finite."""
_RARE = 1e-3
"""Expected collisions in other tables, below which u is taken for what its first term is."""


@dataclass(frozen=True)
class Hashing:
    """directions: [D, tables * bits] float32, those of a table beside one another. Raises ValueError for what can't be a code."""

    bits: int
    tables: int
    directions: torch.Tensor

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MOST_BITS:
            raise ValueError(f"a code has 1 to {MOST_BITS} bits, not {self.bits}")
        if not 2 <= self.tables <= MOST_TABLES:
            raise ValueError(f"there are 2 to {MOST_TABLES} tables, not {self.tables}")
        if self.directions.shape[1] != self.bits * self.tables:
            raise ValueError(f"{self.tables} tables of {self.bits} bits take {self.bits * self.tables} directions")


@lru_cache(maxsize=4)
def hashing(dim: int, bits: int, tables: int, seed: int) -> Hashing:
    """With independent normal directions, the same for all layers and heads. The tensor is shared: not to be written to."""
    draw = torch.Generator().manual_seed(seed)
    return Hashing(bits, tables, torch.randn(dim, bits * tables, generator=draw))


@dataclass(frozen=True)
class Index:
    """The tables of keys [Hkv, T, D] of one layer.

    centres: [Hkv, D] float32; norms: [Hkv, T] float32, of what is hashed; ids: [Hkv, tables, T] uint16, the keys of each table ordered by
    their codes; starts: [Hkv, tables, 2^bits + 1] uint16, where the keys of each code begin among them, and where the last ones end.
    """

    centres: torch.Tensor
    norms: torch.Tensor
    starts: torch.Tensor
    ids: torch.Tensor

    @property
    def keys(self) -> int:
        return self.norms.shape[1]


@dataclass(frozen=True)
class IndexedBlock:
    """Blocks that stand behind one another, and one index of all their keys.

    certain: [Hkv, groups of 16 keys] int16, a bit for each key that is always read, and never drawn. Every row sees all keys.
    """

    blocks: Sequence[Block]
    index: Index
    certain: torch.Tensor | None = None

    def is_certain(self) -> torch.Tensor:
        """[Hkv, T] bool."""
        return is_certain(self.certain, self.index.norms.shape[0], self.index.keys)


@dataclass(frozen=True)
class Met:
    """out [N, Hq, D]; lse [N, Hq]; read [N, Hkv, 3] int32: rows of K and V read, keys used summed over heads, bytes of the index read."""

    out: torch.Tensor
    lse: torch.Tensor
    read: torch.Tensor


def codes(x: torch.Tensor, hashing: Hashing) -> torch.Tensor:
    """[..., tables] int64 of x [..., D]: bit i of a code says whether the product with the i-th direction of the table is negative."""
    negative = (x.float() @ hashing.directions < 0).view(*x.shape[:-1], hashing.tables, hashing.bits)
    return (negative.long() << torch.arange(hashing.bits)).sum(-1)


def build(keys: torch.Tensor, hashing: Hashing) -> Index:
    """The index of keys [Hkv, T, D], at most MOST_KEYS; their mean is the centre. Keys of one code stand in order."""
    centres = keys.float().mean(1)
    return index_of(keys.float() - centres[:, None], centres, hashing)


def index_of(centred: torch.Tensor, centres: torch.Tensor, hashing: Hashing) -> Index:
    """The index of what is hashed of keys, [Hkv, T, D] float32."""
    ordered, ids = codes(centred, hashing).transpose(1, 2).sort(dim=-1, stable=True)  # [Hkv, tables, T]
    bounds = torch.arange((1 << hashing.bits) + 1).expand(*ids.shape[:2], -1)
    starts = torch.searchsorted(ordered.contiguous(), bounds.contiguous())
    return Index(centres, centred.norm(dim=-1), starts.to(torch.uint16), ids.to(torch.uint16))


def collisions(q: torch.Tensor, index: Index, hashing: Hashing) -> tuple[torch.Tensor, torch.Tensor]:
    """For q [Hkv, G, D]: in how many tables each key meets it [Hkv, G, T], and the entries of buckets looked through [Hkv] int64."""
    of_queries, tokens = codes(q, hashing), index.keys  # [Hkv, G, tables]
    counts = torch.zeros(*q.shape[:2], tokens, dtype=torch.int64)
    entries = torch.zeros(q.shape[0], dtype=torch.int64)
    first = torch.arange(hashing.tables) * tokens  # of each table in the ids of a head
    for head, of_heads in enumerate(of_queries):
        ids, starts = index.ids[head].flatten().long(), index.starts[head].long()
        for h, code in enumerate(of_heads):
            begin, end = (starts.gather(1, code[:, None] + step).flatten() for step in (0, 1))
            sizes = end - begin
            skipped = begin + first - (sizes.cumsum(0) - sizes)
            met = ids[torch.arange(int(sizes.sum())) + skipped.repeat_interleave(sizes)]
            counts[head, h] = torch.bincount(met, minlength=tokens)
            entries[head] += len(met)
    return counts, entries


def cosines(q: torch.Tensor, keys: torch.Tensor, index: Index) -> torch.Tensor:
    """[Hkv, G, T], of the angles between q [Hkv, G, D] and what was hashed of keys [Hkv, T, D].

    Where one of them has no length it is 0, since then a bit is the same in one of two cases; where both have none it is 1.
    """
    products = torch.bmm(q, (keys.to(q.dtype)).mT) - (q @ index.centres.to(q.dtype)[:, :, None])
    lengths, norms = q.norm(dim=-1)[..., None], index.norms.to(q.dtype)[:, None]
    known = lengths * norms > 0
    cos = torch.where(known, products / torch.where(known, lengths * norms, 1), ((lengths == 0) & (norms == 0)).to(q.dtype))
    return cos.clamp(-1, 1)


def log_inclusion(cos: torch.Tensor, bits: int, tables: int) -> torch.Tensor:
    """ln u in float64: of the probability that two vectors at this angle meet in at least two of the tables."""
    agreement = (1 - torch.arccos(cos.double().clamp(-1, 1)) / math.pi).clamp_min(_LEAST_AGREEMENT)
    log_meeting = bits * agreement.log()  # of ln P, P the probability that they meet in one table
    meeting = log_meeting.exp()
    others = (tables - 1) * meeting
    u = -torch.expm1((tables - 1) * torch.log1p(-meeting) + torch.log1p(others))
    return torch.where(others < _RARE, math.log(math.comb(tables, 2)) + 2 * log_meeting, u.log())


def choose(q: torch.Tensor, keys: torch.Tensor, index: Index, hashing: Hashing) -> tuple[torch.Tensor, torch.Tensor]:
    """What the logits of keys [Hkv, T, D] get on top for q [Hkv, G, D], [Hkv, G, T] float64, -inf where a key isn't drawn; and the bytes
    of the index that this reads for each KV head, norms of drawn keys left out, [Hkv] int64."""
    counts, entries = collisions(q, index, hashing)
    weights = torch.where(counts >= 2, -log_inclusion(cosines(q.double(), keys, index), hashing.bits, hashing.tables), -torch.inf)
    return weights, 2 * entries + q.shape[1] * hashing.tables * 4


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    whole: Sequence[Block],
    indexed: Sequence[IndexedBlock],
    hashing: Hashing,
    scale: float,
    softcap: float = 0.0,
) -> Met:
    """q: [N, Hq, D] float; positions: [N] int; whole: blocks that are read whole, by the rows at and behind their positions."""
    rows, heads, dim = q.shape
    kv_heads = (indexed[0].index.norms if indexed else whole[0].k).shape[0]
    grouped = q.view(rows, kv_heads, heads // kv_heads, dim)
    read = torch.zeros(rows, kv_heads, 3, dtype=torch.int32)
    parts: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []  # keys, values, and what logits get on top [N, Hkv, G, T]
    for block in whole:
        hidden = torch.arange(block.position, block.position + block.k.shape[1]) > positions[:, None]
        on_top = torch.where(hidden, -torch.inf, 0.0).double()[:, None, None].expand(-1, *grouped.shape[1:3], -1)
        parts.append((block.k, block.v, on_top))
    for each in indexed:
        k, v = (torch.cat([getattr(block, name) for block in each.blocks], 1) for name in ("k", "v"))
        certain, rows_on_top = each.is_certain(), []
        for row, of_row in enumerate(grouped):
            weights, index_bytes = choose(of_row.float(), k, each.index, hashing)
            rows_on_top.append(weights.masked_fill(certain[:, None], 0.0))
            drawn = ((weights > -torch.inf).any(1) & ~certain).sum(-1)
            read[row, :, 0] += drawn + certain.sum(-1)
            read[row, :, 1] += (rows_on_top[-1] > -torch.inf).sum((1, 2))
            read[row, :, 2] += index_bytes + 4 * drawn
        parts.append((k, v, torch.stack(rows_on_top)))
    keys = torch.cat([k for k, _, _ in parts], 1).to(q.dtype)
    logits = torch.einsum("nhgd,htd->nhgt", grouped, keys) * scale
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    logits = logits + torch.cat([on_top for _, _, on_top in parts], -1).to(q.dtype)
    lse = logits.logsumexp(-1)
    probabilities = torch.exp(logits - lse[..., None]).nan_to_num(0.0)
    out = torch.einsum("nhgt,htd->nhgd", probabilities, torch.cat([v for _, v, _ in parts], 1).to(q.dtype))
    return Met(out.reshape(q.shape), lse.reshape(rows, heads), read)
