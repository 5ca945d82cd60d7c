"""Identity of stored KV beside the tokens themselves: equal namespace and tokens, equal K and V up to rounding."""

from __future__ import annotations

from contextlib import suppress

import blake3

from engine.errors import LongshelfError
from engine.model.installed import InstalledModel, Models
from engine.store.format import VERSION


def namespace(installed: InstalledModel) -> str:
    """Identity of what K and V depend on beside the tokens: weights by content, config, stored dtype, layout. blake3 hex."""
    parts = (installed.card.weights_digest, installed.config.identity, "bfloat16", str(VERSION))
    return blake3.blake3("\n".join(parts).encode()).hexdigest()


def namespaces(models: Models) -> set[str]:
    """Those of all installed models that can be used."""
    found = set()
    for name in models.names():
        with suppress(LongshelfError):
            found.add(namespace(models.open(name)))
    return found
