"""A document's map: the place of an offset, where parts may start, and the JSON forms."""

from __future__ import annotations

import json

from engine.documents.document import Document, Place, Skipped, Span, sort_spans, spans_from_json

BOOK = "A Book\n\nPART ONE\n\nChapter 1\n\nFirst words.\nMore words.\n\nLast words.\n\nChapter 2\n\nThe end.\n"


def document(text: str, spans: list[Span], kind: str = "text") -> Document:
    return Document("/x/book.txt", "book", kind, "utf-8", True, text, sort_spans(spans), (Skipped("a.png", "binary"),), "00")


def book() -> Document:
    one, two = BOOK.index("Chapter 1"), BOOK.index("Chapter 2")
    spans = [
        Span("section", "Chapter 1", one, two),
        Span("section", "PART ONE", BOOK.index("PART"), len(BOOK)),
        Span("section", "Chapter 2", two, len(BOOK)),
        Span("page", "i", 0, one),
        Span("page", "1", one, len(BOOK)),
    ]
    return document(BOOK, spans)


def folder() -> tuple[Document, int, int]:
    text = "=== a.py ===\nx = 1\ndef f():\n    pass\n\n=== b/c.py ===\ny = 2\n\n"
    a, b = text.index("x = 1"), text.index("y = 2")
    spans = [Span("file", "a.py", a, a + 24), Span("file", "b/c.py", b, b + 6), Span("section", "def f", a + 6, a + 24)]
    return document(text, spans, "folder"), a, b


def test_a_place_names_page_innermost_section_and_line() -> None:
    assert book().place(BOOK.index("More")) == Place(page=2, page_label="1", section="Chapter 1", line=8, file=None)


def test_a_place_between_inner_sections_belongs_to_the_outer_one() -> None:
    assert book().place(BOOK.index("PART") + 2).section == "PART ONE"


def test_a_place_before_all_sections_has_none() -> None:
    assert book().place(0) == Place(page=1, page_label="i", section=None, line=1, file=None)


def test_an_offset_outside_the_text_is_taken_as_the_nearest_end() -> None:
    assert book().place(10**9).section == "Chapter 2"
    assert book().place(-5).line == 1


def test_a_place_in_an_empty_document_is_nowhere() -> None:
    assert document("", []).place(0) == Place(None, None, None, None, None)


def test_lines_count_within_the_file_of_a_folder() -> None:
    found, a, b = folder()
    assert found.place(a + 6) == Place(page=None, page_label=None, section="a.py · def f", line=2, file="a.py")
    assert found.place(b) == Place(page=None, page_label=None, section="b/c.py", line=1, file="b/c.py")


def test_the_line_that_names_a_file_belongs_to_that_file() -> None:
    found, a, b = folder()
    assert [found.place(offset).file for offset in (0, a - 1, b - 3, b - 15, b - 16)] == ["a.py", "a.py", "b/c.py", "b/c.py", "a.py"]
    assert found.place(b - 3).line == 1


def test_chapters_are_the_outermost_headings_of_which_there_are_several() -> None:
    strengths = dict(book().break_points())
    assert strengths[BOOK.index("Chapter 2")] == 3
    assert strengths[BOOK.index("PART")] == 3
    assert strengths[BOOK.index("Last words")] == 1
    assert BOOK.index("More words") not in strengths


def test_sections_inside_chapters_are_weaker_breaks() -> None:
    text = "# T\n\n## A\n\n### a\n\nx\n\n## B\n\ny\n"
    spans = [Span("section", mark, text.index(f"{mark}\n"), len(text)) for mark in ("# T", "## B")]
    spans += [Span("section", "A", text.index("## A"), text.index("## B")), Span("section", "a", text.index("### a"), text.index("## B"))]
    strengths = dict(document(text, spans).break_points())
    assert [strengths[text.index(mark)] for mark in ("## A", "### a", "## B")] == [3, 2, 3]


def test_a_file_of_a_folder_breaks_before_the_line_that_names_it() -> None:
    found, a, _ = folder()
    strengths = dict(found.break_points())
    assert (strengths[0], strengths[found.text.index("=== b")], strengths[a + 6]) == (3, 3, 2)


def test_breaks_are_sorted_inside_the_text_and_begin_at_its_start() -> None:
    breaks = book().break_points()
    assert breaks == sorted(breaks)
    assert breaks[0] == (0, 3)
    assert all(0 <= offset < len(BOOK) for offset, _ in breaks)


def test_text_without_blank_lines_breaks_at_indented_lines() -> None:
    text = "".join(f"　{'말' * 50}\n{'글' * 50}\n" for _ in range(30))
    offsets = [offset for offset, _ in document(text, []).break_points()]
    assert offsets == [103 * paragraph for paragraph in range(30)]


def test_lines_are_breaks_where_nothing_else_is() -> None:
    text = "0123456789\n" * 300
    offsets = [offset for offset, _ in document(text, []).break_points()]
    assert offsets == [11 * line for line in range(300)]


def test_a_document_survives_json() -> None:
    before = book()
    assert Document.from_json(json.loads(json.dumps(before.as_json()))) == before


def test_spans_and_skipped_survive_as_texts_of_their_own() -> None:
    before = book()
    assert spans_from_json(before.spans_json()) == before.spans
    fields = before.as_json() | {"spans": before.spans_json(), "skipped": before.skipped_json()}
    assert Document.from_json(fields) == before
