"""Identity of stored KV beside the tokens themselves: equal namespace and tokens, equal K and V up to rounding."""

from __future__ import annotations

import blake3

from engine.model.installed import InstalledModel
from engine.store.format import VERSION


def namespace(installed: InstalledModel) -> str:
    """Identity of what K and V depend on beside the tokens: weights by content, config, stored dtype, layout. blake3 hex."""
    parts = (installed.card.weights_digest, installed.config.identity, "bfloat16", str(VERSION))
    return blake3.blake3("\n".join(parts).encode()).hexdigest()
