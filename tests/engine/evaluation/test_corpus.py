"""Questions with known places: where answers lie after files are read and cut, and what is skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.evaluation.corpus import OnShelf, Question, cut, language, load
from engine.shelf import Shelf

LINES = [f"Line {n:03} says {n * 7}.\n" for n in range(200)]
TEXT = "".join(LINES)


def question(answer: str, file: str = "book.txt", text: str = TEXT) -> Question:
    start = text.index(answer)
    return Question(file, f"What says {answer}?", answer, start, start + len(answer), "en")


def write(folder: Path, *rows: dict[str, object], **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8", newline="")
    (folder / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def row(answer: str, file: str = "book.txt", offset: int | None = None) -> dict[str, object]:
    at = TEXT.index(answer) if offset is None else offset
    return {"file": file, "question": f"Where is {answer}?", "answer": answer, "offset_lf": at, "length": len(answer)}


# ---- cutting ----


def test_a_cut_keeps_every_answer_at_its_new_place() -> None:
    asked = [question("says 35."), question("says 1099.")]
    text, moved = cut(TEXT, asked, range(len(TEXT)), 400)
    assert [text[q.start : q.end] for q in moved] == ["says 35.", "says 1099."]
    assert len(text) <= 400 + len("\n\n")


def test_a_cut_is_made_of_whole_lines() -> None:
    text, _ = cut(TEXT, [question("says 35."), question("says 1099.")], range(len(TEXT)), 400)
    assert set(text.splitlines(keepends=True)) <= {*LINES, "\n"}


def test_answers_near_each_other_share_one_run() -> None:
    text, moved = cut(TEXT, [question("says 700."), question("says 707.")], range(len(TEXT)), 400)
    assert text in TEXT
    assert [q.answer for q in moved] == ["says 700.", "says 707."]


def test_a_run_at_an_end_of_the_text_grows_to_the_other_side() -> None:
    text, _ = cut(TEXT, [question("says 0.")], range(len(TEXT)), 400)
    assert text == TEXT[: len(text)]
    assert len(text) > 380


# ---- loading ----


def test_a_file_is_read_as_the_program_reads_it(tiny_shelf: Shelf, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", row("says 35."), book_txt="\ufeff" + TEXT.replace("\n", "\r\n"))
    files, skipped = load(folder, tiny_shelf.model()[0].tokenizer, None)
    assert (files[0].text, files[0].whole, skipped) == (TEXT, True, [])
    assert files[0].text[files[0].questions[0].start : files[0].questions[0].end] == "says 35."


def test_a_limit_cuts_long_files_only(tiny_shelf: Shelf, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", row("says 35."), row("says 0.", "short.txt", 10), book_txt=TEXT, short_txt=LINES[0])
    files, _ = load(folder, tiny_shelf.model()[0].tokenizer, 300)
    assert [file.whole for file in files] == [False, True]
    assert len(files[0].text) <= 300


def test_an_answer_that_moved_is_found_at_the_nearest_place(tiny_shelf: Shelf, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", row("says 35.", offset=0), book_txt=TEXT)
    files, _ = load(folder, tiny_shelf.model()[0].tokenizer, None)
    assert files[0].questions[0].start == TEXT.index("says 35.")


def test_what_can_not_be_asked_is_skipped_with_its_reason(tiny_shelf: Shelf, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", row("says 35."), row("nowhere", offset=0), row("x", "gone.txt", 0), book_txt=TEXT)
    files, skipped = load(folder, tiny_shelf.model()[0].tokenizer, None)
    assert [len(file.questions) for file in files] == [1]
    assert [(skip.file, skip.question) for skip in skipped] == [("book.txt", "Where is nowhere?"), ("gone.txt", "Where is x?")]
    assert all(skip.reason for skip in skipped)


def test_files_with_the_same_text_stand_side_by_side(tiny_shelf: Shelf, tmp_path: Path) -> None:
    rows = [row("says 35.", name) for name in ("a.txt", "b.txt", "c.txt")]
    folder = write(tmp_path / "c", *rows, a_txt=TEXT, b_txt=TEXT + "More.\n", c_txt=TEXT)
    files, _ = load(folder, tiny_shelf.model()[0].tokenizer, None)
    assert [file.name for file in files] == ["a.txt", "c.txt", "b.txt"]


def test_a_folder_without_questions_is_refused(tiny_shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(LongshelfError, match=r"qa\.jsonl") as refused:
        load(tmp_path, tiny_shelf.model()[0].tokenizer, None)
    assert refused.value.kind == "not_found"


def test_a_line_that_is_no_question_is_named(tiny_shelf: Shelf, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", row("says 35."), {"file": "book.txt"}, book_txt=TEXT)
    with pytest.raises(LongshelfError, match="Line 2"):
        load(folder, tiny_shelf.model()[0].tokenizer, None)


@pytest.mark.parametrize(("text", "expected"), [("Who?", "en"), ("누구인가? Who", "ko"), ("名前は何か。", "ja")])
def test_the_language_of_a_question(text: str, expected: str) -> None:
    assert language(text) == expected


# ---- on the shelf ----


def test_each_file_is_there_while_it_is_asked_and_gone_after(tiny_shelf: Shelf, tmp_path: Path) -> None:
    folder = write(tmp_path / "c", row("says 35."), row("says 0.", "short.txt", 10), book_txt=TEXT, short_txt=LINES[0])
    files, _ = load(folder, tiny_shelf.model()[0].tokenizer, 300)
    seen = []
    for file, document in OnShelf(tiny_shelf, files, None, lambda text: None):
        assert tiny_shelf.library.documents.text(document.id) == file.text
        assert [row.id for row in tiny_shelf.library.documents.all()] == [document.id]
        seen.append(file.name)
    assert seen == ["book.txt", "short.txt"]
    assert tiny_shelf.library.documents.all() == []
    assert tiny_shelf.library.catalog.rows("SELECT digest FROM segments WHERE shared = 0") == []


def test_a_document_of_the_person_stays(tiny_shelf: Shelf, tmp_path: Path) -> None:
    from tests.engine.books import add

    folder = write(tmp_path / "c", row("says 35."), book_txt=TEXT)
    own = add(tiny_shelf, folder / "book.txt")
    files, _ = load(folder, tiny_shelf.model()[0].tokenizer, None)
    list(OnShelf(tiny_shelf, files, None, lambda text: None))
    assert [row.id for row in tiny_shelf.library.documents.all()] == [own["id"]]
    assert tiny_shelf.library.parts.of(own["id"])[0].state == "ready"
