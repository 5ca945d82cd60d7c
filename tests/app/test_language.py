"""English and Korean: complete, and chosen as the person wants."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import QApplication, QDialogButtonBox
from pytestqt.qtbot import QtBot

from app import language, words
from app.engine_client import Engine
from app.preferences import Preferences
from app.window import Window
from engine.home import Home
from resources.translations.__main__ import known, sentences
from tests.app.fake_engine import book


def test_every_sentence_of_the_window_has_its_korean() -> None:
    translated = known("ko")
    missing = [sentence for sentence in sentences() if not translated.get((sentence.context, sentence.source), [""])[0]]
    assert missing == []


def test_every_plural_has_its_english_forms() -> None:
    translated = known("en")
    missing = [
        sentence for sentence in sentences() if sentence.plural and len(translated.get((sentence.context, sentence.source), [])) != 2
    ]
    assert missing == []


def test_no_translation_is_left_of_sentences_that_are_gone() -> None:
    there = {(sentence.context, sentence.source) for sentence in sentences()}
    assert set(known("ko")) <= there
    assert set(known("en")) <= there


def test_translations_keep_the_places_of_values() -> None:
    def fields(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    wrong = [
        key
        for key, forms in known("ko").items()
        for form in forms
        if fields(form) != fields(key[1]) or ("n" in key[1] and "%n" in key[1]) != ("%n" in form)
    ]
    assert wrong == []


def test_the_window_speaks_korean(qtbot: QtBot, korean: None, home: Home) -> None:
    window = Window(Engine(home), Preferences(home), "ko")
    qtbot.addWidget(window)
    assert [action.text() for action in window.menuBar().actions()] == ["파일(&F)", "대화(&C)", "문서(&D)", "보기(&V)", "도움말(&H)"]
    assert window.status.text() == "엔진을 시작하는 중…"


def test_states_and_numbers_are_korean(korean: None) -> None:
    row = book(state="remembering", percent=42.7, place="3장", seconds_left=5000)
    assert words.state(row) == "기억하는 중 42.7 % · 3장 · 83분 남음"
    assert words.state(book()) == "준비됨 · 168,000토큰 · 3.9 GB"


def test_qts_own_buttons_are_korean(qtbot: QtBot, korean: None) -> None:
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    qtbot.addWidget(box)
    assert box.button(QDialogButtonBox.StandardButton.Cancel).text() == "취소"


def test_plurals_are_english(english: None) -> None:
    assert words.tokens(1) == "1 token"
    assert words.tokens(168_000) == "168,000 tokens"


@pytest.mark.parametrize(
    ("variable", "setting", "chosen"),
    [("ko", "en", "ko"), ("", "ko", "ko"), ("", "en", "en"), ("ko_KR.UTF-8", "system", "ko"), ("fr", "ko", "ko")],
)
def test_the_variable_wins_over_the_setting(variable: str, setting: str, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHELF_LANGUAGE", variable)
    assert language.choose(setting) == chosen


def test_the_language_of_the_system_is_taken_if_it_is_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGSHELF_LANGUAGE", raising=False)
    monkeypatch.setattr(QLocale, "uiLanguages", lambda self: ["fr-FR", "ko-KR", "en-US"])
    assert language.choose() == "ko"
    monkeypatch.setattr(QLocale, "uiLanguages", lambda self: ["fr-FR"])
    assert language.choose() == "en"


def test_an_unfinished_sentence_is_shown_in_english(qapp: QApplication, tmp_path: Path) -> None:
    file = tmp_path / "x.ts"
    one = '<message><source>One</source><translation type="unfinished">하나</translation></message>'
    two = "<message><source>Two</source><translation>둘</translation></message>"
    file.write_text(f'<?xml version="1.0"?><TS version="2.1"><context><name>A</name>{one}{two}</context></TS>', encoding="utf-8")
    translator = language.Sentences(file, qapp)
    qapp.installTranslator(translator)
    assert QCoreApplication.translate("A", "One") == "One"
    assert QCoreApplication.translate("A", "Two") == "둘"
    qapp.removeTranslator(translator)
