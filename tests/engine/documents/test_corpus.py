"""Real files: every known answer stands at its offset, twins in other encodings are equal, chapters and articles are found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine.documents.document import Document
from engine.documents.reader import read

TWINS = [("날개.cp949.txt", "날개.txt"), ("레디메이드인생.cp949.txt", "레디메이드인생.txt"), ("운수좋은날.cp949.txt", "운수좋은날.txt")]
TWINS.append(("동백꽃.euc-kr.txt", "동백꽃.txt"))
LEGACY = [
    ("time-machine.utf16le-nobom.txt", "utf-16-le"),
    ("ginga-tetsudo-no-yoru.sjis.txt", "shift_jis"),
    ("infantry-drill-regulations-1911.latin1.txt", "latin-1"),
    ("날개.cp949.txt", "cp949"),
]


def sections(document: Document) -> list[str]:
    return [span.label for span in document.spans if span.kind == "section"]


def test_every_known_answer_stands_at_its_offset(corpus: Path) -> None:
    rows = [json.loads(line) for line in (corpus / "qa.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["file"].endswith((".txt", ".md"))]
    texts = {name: read(corpus / name).text for name in {row["file"] for row in rows}}
    assert len(rows) > 30
    assert [texts[row["file"]][row["offset_lf"] : row["offset_lf"] + row["length"]] for row in rows] == [row["answer"] for row in rows]


@pytest.mark.parametrize(("legacy", "original"), TWINS)
def test_a_korean_legacy_file_reads_as_its_utf8_twin(corpus: Path, legacy: str, original: str) -> None:
    twin = read(corpus / legacy)
    expected = (corpus / original).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    assert (twin.text, twin.encoding, twin.encoding_confident) == (expected, "cp949", True)


@pytest.mark.parametrize(("name", "encoding"), LEGACY)
def test_a_legacy_encoding_is_found_and_nothing_of_the_text_is_lost(corpus: Path, name: str, encoding: str) -> None:
    document = read(corpus / name)
    expected = (corpus / name).read_bytes().decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    assert (document.encoding, document.encoding_confident) == (encoding, True)
    assert document.text == expected


def test_the_novel_has_its_61_chapters_and_the_licence_is_in_none(corpus: Path) -> None:
    document = read(corpus / "pride-and-prejudice.txt")
    assert [label for label in sections(document) if label.startswith("Chapter")] == [f"Chapter {n}" for n in range(1, 62)]
    assert document.title == "Pride and Prejudice"
    assert document.place(document.text.index("ten miles round")).section == "Chapter 43"
    assert document.place(document.text.rindex("Gutenberg")).section != "Chapter 61"
    chapters = [offset for offset, strength in document.break_points() if strength == 3]
    assert len(chapters) == 1 + 61 + 1  # the start, the chapters, the end mark


@pytest.mark.parametrize("name", ["민법.md", "근로기준법.md"])
def test_a_korean_statute_gives_all_its_marked_headings(corpus: Path, name: str) -> None:
    document = read(corpus / name)
    marked = re.findall(r"^#+ (.+)$", document.text, re.MULTILINE)
    assert sections(document) == [" ".join(label.split()) for label in marked]
    assert document.title == name.removesuffix(".md")


def test_an_article_of_a_statute_is_the_innermost_section(corpus: Path) -> None:
    document = read(corpus / "민법.md")
    place = document.place(document.text.index("19세로 성년"))
    assert (place.section, place.page, place.file) == ("제4조 (성년)", None, None)
    assert document.text.split("\n")[(place.line or 0) - 1].startswith("사람은 19세로")


def test_chapters_written_in_japanese_notation_are_found(corpus: Path) -> None:
    document = read(corpus / "ginga-tetsudo-no-yoru.sjis.txt")
    assert sections(document)[0] == "一、午后の授業"
    assert len(sections(document)) == 9


def test_form_feeds_are_pages_and_numbered_headings_sections(corpus: Path) -> None:
    document = read(corpus / "rfc5321-smtp.txt")
    place = document.place(document.text.index("255 octets"))
    assert (place.page, place.page_label, place.section) == (63, "63", "4.5.3.1.2. Domain")


def test_a_roman_numeral_takes_its_title_from_the_next_line(corpus: Path) -> None:
    assert "XI The Palace of Green Porcelain" in sections(read(corpus / "time-machine.utf16le-nobom.txt"))


def test_a_table_of_contents_opens_no_chapters(corpus: Path) -> None:
    labels = sections(read(corpus / "infantry-drill-regulations-1911.latin1.txt"))
    assert [label for label in labels if label.startswith("PART")] == [
        "PART I.--DRILL.",
        "PART II.--COMBAT.",
        "PART III.--MARCHES AND CAMPS.",
        "PART IV.--CEREMONIES AND INSPECTIONS.",
        "PART V.--MANUALS.",
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dense-passage-retrieval.pdf", "unsupported"),
        ("moby-dick.epub", "unsupported"),
        ("fully-featured-sample.docx", "unsupported"),
        ("tika-intro-v5.hwp", "unsupported"),
        ("gangnam-public-notice.hwpx", "unsupported"),
        ("toolz-0.12.1.zip", "binary"),
    ],
)
def test_formats_of_later_versions_are_refused_by_name(corpus: Path, name: str, kind: str) -> None:
    from engine.errors import LongshelfError

    with pytest.raises(LongshelfError) as caught:
        read(corpus / name)
    assert caught.value.kind == kind
