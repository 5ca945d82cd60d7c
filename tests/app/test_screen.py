"""Where no window can be opened, one line says why; Qt itself would end the process."""

from __future__ import annotations

import sys

import pytest

from app import screen
from engine.errors import LongshelfError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a screen")


def test_without_a_display_it_says_so() -> None:
    with pytest.raises(LongshelfError, match="no screen") as caught:
        screen.check({})
    assert caught.value.kind == "no_screen"


@pytest.mark.parametrize("environment", [{"WAYLAND_DISPLAY": "wayland-0"}, {"QT_QPA_PLATFORM": "offscreen"}])
def test_a_named_platform_is_left_to_qt(environment: dict[str, str]) -> None:
    assert screen.check(environment) is None


def test_missing_libraries_are_named_with_the_line_that_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "_loads", lambda name: name != "libxcb-cursor.so.0")
    with pytest.raises(LongshelfError, match="lacks libxcb-cursor.so.0, which") as caught:
        screen.check({"DISPLAY": ":0"})
    assert "libxcb-cursor0" in caught.value.hint
