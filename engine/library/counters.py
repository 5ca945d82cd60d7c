"""Totals that are kept for good, such as tokens_prefilled_total: how many tokens were ever computed for documents."""

from __future__ import annotations

from engine.library.catalog import Catalog

TOKENS_PREFILLED = "tokens_prefilled_total"


class Counters:
    """Named whole numbers, 0 until first raised. Inside a transaction a change is part of it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def increment(self, name: str, by: int = 1) -> int:
        """Add to a counter; returns the new value."""
        with self._catalog.transaction() as db:
            db.execute(
                "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                [name, by],
            )
            return self.get(name)

    def get(self, name: str) -> int:
        row = self._catalog.row("SELECT value FROM counters WHERE name = ?", [name])
        return int(row["value"]) if row else 0

    def all(self) -> dict[str, int]:
        return {str(row["name"]): int(row["value"]) for row in self._catalog.rows("SELECT name, value FROM counters ORDER BY name")}
