"""Which encoding the bytes are in: short and long, marked and not, pure and mixed, damaged and asked for."""

from __future__ import annotations

import codecs

import pytest

from engine.documents.encodings import _COMMON, decode, looks_wide
from engine.errors import LongshelfError

KOREAN = "오늘도 또 우리 수탉이 막 쫓기었다. 내가 점심을 먹고 나무를 하러 갈 양으로 나올 때이었다.\n"
JAPANESE = "ジョバンニが学校の門を出るとき、同じ組の七八人は家へ帰らずカムパネルラをまん中にして集まっていました。\n"
CHINESE = "我们的祖国是一个伟大的国家，他在学校里学习中文已经三年了，这不是一个容易的工作。\n"
RUSSIAN = "Вчера мы ходили в школу и читали большую книгу о войне и мире, это было очень интересно.\n"
FRENCH = "L'été dernier, les élèves étaient très fatigués après la leçon de français; où est le garçon?\n"
POLISH = "Wczoraj poszliśmy do szkoły i czytaliśmy dużą książkę o wojnie, która była bardzo ciekawa. Żółw.\n"
ENGLISH = "The meeting with Mr. Kim is on Friday at ten, in the usual place.\n"


@pytest.mark.parametrize("length", [1, 30])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (KOREAN, "utf-8"),
        (KOREAN, "cp949"),
        (KOREAN, "johab"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (CHINESE, "gb18030"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (FRENCH, "latin-1"),
        (POLISH, "cp1250"),
    ],
)
def test_the_encoding_of_prose_is_found(text: str, encoding: str, length: int) -> None:
    found = decode((text * length).encode(encoding), "notes.txt")
    assert (found.text, found.encoding, found.confident) == (text * length, encoding, True)


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [KOREAN, JAPANESE, CHINESE, RUSSIAN, ENGLISH])
def test_utf16_without_a_mark_is_found_in_any_script(text: str, order: str) -> None:
    found = decode((text * 5).encode(order), "notes.txt")
    assert (found.text, found.encoding) == (text * 5, order)


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ],
)
def test_a_byte_order_mark_decides_and_is_no_part_of_the_text(mark: bytes, codec: str) -> None:
    found = decode(mark + KOREAN.encode(codec), "notes.txt")
    assert (found.text, found.encoding, found.confident) == (KOREAN, codec, True)


def test_one_korean_word_in_long_english_is_read_as_korean_but_not_with_confidence() -> None:
    text = ENGLISH * 30 + "Place: 서울\n" + ENGLISH * 30
    found = decode(text.encode("cp949"), "notes.txt")
    assert (found.text, found.confident) == (text, False)


def test_a_lone_copyright_sign_stops_nothing() -> None:
    text = "Copyright © 2001 The Authors.\n" + ENGLISH * 30
    found = decode(text.encode("latin-1"), "licence.txt")
    assert (found.text, found.encoding, found.confident) == (text, "latin-1", False)


def test_windows_quotes_are_cp1252() -> None:
    text = "“Well,” she said – “it’s late.”\n" * 5
    found = decode(text.encode("cp1252"), "notes.txt")
    assert (found.text, found.encoding) == (text, "cp1252")


def test_utf8_cut_within_a_character_is_still_utf8() -> None:
    found = decode((KOREAN * 3).rstrip().rstrip(".").encode()[:-1], "notes.txt")
    assert found.encoding == "utf-8"
    assert not found.confident
    assert found.text.endswith("때이었\ufffd")


def test_an_encoding_that_is_asked_for_is_used() -> None:
    found = decode("ÇÑ±Û".encode("latin-1"), "notes.txt", "latin-1")
    assert (found.text, found.encoding, found.confident) == ("ÇÑ±Û", "latin-1", True)


def test_a_fallback_gives_way_to_utf8_and_comes_before_guessing() -> None:
    assert decode(KOREAN.encode(), "a.txt", fallback="latin-1").text == KOREAN
    assert decode("ÇÑ±Û".encode("latin-1"), "a.txt", fallback="latin-1").text == "ÇÑ±Û"


@pytest.mark.parametrize("name", ["klingon", "rot13", "base64"])
def test_an_unknown_encoding_is_named_in_the_error(name: str) -> None:
    with pytest.raises(LongshelfError, match=name) as caught:
        decode(b"text", "notes.txt", name)
    assert caught.value.kind == "usage"
    for common in ("utf-8", "cp949", "shift_jis", "gb18030", "latin-1"):
        assert common in caught.value.hint


def test_every_encoding_that_is_suggested_is_known() -> None:
    for name in _COMMON:
        assert decode("known".encode(name), "notes.txt", name).text == "known"


def test_bytes_that_do_not_fit_the_asked_encoding_are_shown() -> None:
    with pytest.raises(LongshelfError, match="notes.txt is not in utf-8: byte 0xC7 at 0") as caught:
        decode("한글".encode("cp949"), "notes.txt", "utf-8")
    assert caught.value.kind == "undecodable"


def test_binary_data_is_not_taken_for_utf16() -> None:
    pcm = b"".join((value % 300).to_bytes(2, "little") for value in range(0, 60000, 7))
    assert not any(looks_wide(data) for data in (bytes(range(256)) * 64, bytes(4096), pcm, ENGLISH.encode()))
