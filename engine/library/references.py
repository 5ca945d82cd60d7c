"""Which segments are needed: those of parts and joins, what stands before them in their chains, and shared ones in use."""

from __future__ import annotations

from engine.library.catalog import Catalog

_NEEDED = """
    WITH RECURSIVE needed (digest) AS (
        SELECT digest FROM part_segments
        UNION SELECT digest FROM join_segments
        UNION SELECT digest FROM segments WHERE shared AND namespace IN (SELECT namespace FROM parts)
        UNION SELECT segments.parent FROM segments JOIN needed USING (digest) WHERE segments.parent != ''
    )
"""


def needed(catalog: Catalog) -> set[str]:
    """Digests that some part or join reads, directly or as an earlier link of its chain, or that its next reading begins with."""
    return {str(row["digest"]) for row in catalog.rows(_NEEDED + "SELECT digest FROM needed")}


def unneeded(catalog: Catalog) -> list[tuple[str, int]]:
    """(digest, bytes) of segments with rows that nothing reads any more, least recently used first: what `gc` may remove."""
    sql = _NEEDED + "SELECT digest, bytes FROM segments WHERE digest NOT IN needed ORDER BY last_used, digest"
    return [(str(row["digest"]), int(row["bytes"])) for row in catalog.rows(sql)]


def last_use(catalog: Catalog, namespace: str | None = None) -> dict[str, float]:
    """Document id → when its memory was last used (Unix seconds), oldest first; documents that have none are left out."""
    sql = """
        SELECT parts.document_id AS id, max(segments.last_used) AS used
        FROM parts JOIN part_segments ON part_segments.part_id = parts.id JOIN segments USING (digest)
        WHERE :namespace IS NULL OR parts.namespace = :namespace GROUP BY parts.document_id ORDER BY used, min(parts.id)
    """
    return {str(row["id"]): float(row["used"]) for row in catalog.rows(sql, {"namespace": namespace})}
