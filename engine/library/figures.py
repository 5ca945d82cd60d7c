"""What the figures saved with an answer say of how it was read, in words; for the terminal and for exported chats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHORT = "short"
JOINED = "joined"
ON_DEVICE = "on_device"
_BECAUSE = {
    SHORT: ", since the part of the text that it needed is short",
    JOINED: ", since parts that were joined without reading them together can't be sampled",
    ON_DEVICE: ", since the graphics card holds all of it and reads it fast",
}


def how_read(figures: Mapping[str, Any]) -> str:
    """For an answer that was to be sampled what was read of the memory and the error that was measured; "" for an exact one.

    figures: of the result of `ask`.
    """
    error = figures.get("error_measured")
    if figures.get("mode") == "sampled" and error is not None:
        read = share(float(figures.get("rows_read_fraction") or 0.0))
        promised = f", at most {share(float(epsilon))} promised for nine in ten" if (epsilon := figures.get("epsilon")) else ""
        return f"read {read} of the memory for each word, measured error {share(float(error))}{promised}"
    if "sampled" in (figures.get("mode"), figures.get("mode_asked")):
        return "read exactly" + _BECAUSE.get(str(figures.get("exact_because")), "")
    return ""


def share(fraction: float) -> str:
    """12 %, 6.2 %; never 0 % of what is more than nothing."""
    value = 100 * fraction
    if 0 < value < 0.1:
        return "under 0.1 %"
    return f"{value:.0f} %" if value >= 9.95 or not value else f"{value:.1f} %"
