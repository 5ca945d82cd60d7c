"""The doctor finds what is wrong, says why and what to do, and mends it."""

from __future__ import annotations

import pytest
from sqlite_utils import Database

from engine.errors import LongshelfError, Stopped
from engine.library.checkup import Problem, examine
from engine.library.library import Library
from engine.library.mending import repair
from tests.engine.library.shelf import PREAMBLE_DIGEST, Piece, abandon, add_and_remember, flip, pieces, remember
from tests.engine.library.test_sidecars import DATA, keep, made_of
from tests.engine.store.pieces import header, kv

ONE, TWO = "It was a bright cold day", "in April"


def kinds(library: Library, deep: bool = False) -> list[str]:
    problems = examine(library, deep)
    for problem in problems:
        assert all(problem.as_json().values()), problem
    return [problem.kind for problem in problems]


def mend(library: Library, deep: bool = False) -> list[str]:
    """Repair everything; nothing may be left. Returns what was done."""
    done = [entry.done for entry in repair(library, examine(library, deep))]
    assert kinds(library, deep) == []
    return done


def test_a_home_in_order_has_no_problems(library: Library) -> None:
    add_and_remember(library, ONE, TWO)
    assert kinds(library) == kinds(library, deep=True) == []


def test_a_problem_is_four_sentences_for_scripts() -> None:
    problem = Problem("kind", "what", "cause", "next", "subject")
    assert problem.as_json() == {"kind": "kind", "what": "what", "cause": "cause", "next": "next"}


@pytest.mark.parametrize("region", ["header", "key", "value", "ids", "table", "end"])
def test_a_flipped_byte_is_found_by_the_deep_check_and_just_that_segment_is_read_again(library: Library, region: str) -> None:
    row = add_and_remember(library, ONE, TWO)
    bad = pieces(ONE)[1]
    path = library.store.path(bad.digest)
    size = path.stat().st_size
    at = {"header": 50, "key": 4096, "value": 4096 * 2, "ids": 4096 * 5, "table": size - 20, "end": size - 1}[region]
    flip(path, at)
    (problem,) = examine(library, deep=True)
    assert problem.kind == "segment_damaged"
    assert "part 1 of 'Moby-Dick'" in problem.what
    mend(library, deep=True)
    first, second = library.parts.of(row.id)
    assert (first.state, first.tokens_done, second.state) == ("damaged", 8, "ready")
    assert [job.document_id for job in library.jobs.all()] == [row.id]
    assert library.documents.get(row.id).state == "queued"
    library.memory.remember(first.id, bad.header, bad.ids, kv(bad.header), prefilled=8)
    assert library.memory.adopt(first.id).state == "ready"


def test_a_missing_segment_is_found_by_the_quick_check(library: Library) -> None:
    row = add_and_remember(library, ONE)
    library.store.path(pieces(ONE)[2].digest).unlink()
    assert kinds(library) == ["segment_missing"]
    mend(library)
    (part,) = library.parts.of(row.id)
    assert (part.state, part.tokens_done) == ("damaged", 16)
    assert remember(library, part, ONE).state == "ready"


def test_a_truncated_segment_is_found_by_the_quick_check(library: Library) -> None:
    add_and_remember(library, ONE)
    path = library.store.path(pieces(ONE)[0].digest)
    path.write_bytes(path.read_bytes()[:5000])
    assert kinds(library) == ["segment_damaged"]
    mend(library)


def test_a_lost_preamble_is_told_and_taken_out(library: Library) -> None:
    add_and_remember(library, ONE)
    library.store.path(PREAMBLE_DIGEST).unlink()
    assert kinds(library) == ["segment_missing"]
    mend(library)


def test_files_that_belong_to_nothing_are_removed_and_those_a_part_expects_are_left(library: Library) -> None:
    row = add_and_remember(library, ONE)
    stray = Piece(header(tokens=4), [7, 7, 7, 7])
    library.store.commit(stray.header, stray.ids, kv(stray.header))
    waiting = pieces(TWO)[0]
    library.store.commit(waiting.header, waiting.ids, kv(waiting.header))
    from tests.engine.library.shelf import MODEL, add, plans
    from tests.engine.store.pieces import NAMESPACE

    add(library, TWO, title="Two")
    library.parts.assign(row.id, NAMESPACE, MODEL, plans(ONE))
    assert kinds(library) == ["segment_orphan"]
    mend(library)
    assert not library.store.has(stray.digest)
    assert library.store.has(waiting.digest)


def test_a_sidecar_that_is_missing_or_cut_is_found_by_the_quick_check_and_dropped(library: Library) -> None:
    add_and_remember(library, ONE, TWO)
    library.sidecars.store.path(keep(library, ONE, TWO)).unlink()
    path = library.sidecars.store.path(keep(library, ONE))
    path.write_bytes(path.read_bytes()[:5000])
    assert sorted(kinds(library)) == ["sidecar_damaged", "sidecar_missing"]
    mend(library)
    assert library.sidecars.all() == []


@pytest.mark.parametrize("at", [50, 5000, -20, -1])
def test_a_flipped_byte_of_a_sidecar_is_found_by_the_deep_check_and_only_that_is_dropped(library: Library, at: int) -> None:
    row = add_and_remember(library, ONE, TWO)
    kept = keep(library, TWO)
    flip(library.sidecars.store.path(keep(library, ONE, TWO)), at)
    assert kinds(library) == []
    assert kinds(library, deep=True) == ["sidecar_damaged"]
    mend(library, deep=True)
    assert [left.digest for left in library.sidecars.all()] == [kept]
    assert library.documents.get(row.id).state == "ready"


def test_a_row_that_says_something_else_than_its_sidecar_is_dropped_with_it(library: Library) -> None:
    add_and_remember(library, ONE, TWO)
    keep(library, ONE, TWO)
    with library.catalog.transaction() as db:
        db.execute("UPDATE sidecar_sources SET segment = ? WHERE ordinal = 0", [PREAMBLE_DIGEST])
    assert kinds(library) == []
    assert kinds(library, deep=True) == ["sidecar_damaged"]
    mend(library, deep=True)
    assert library.sidecars.store.usage() == 0


def test_a_sidecar_that_belongs_to_nothing_is_removed(library: Library) -> None:
    add_and_remember(library, ONE)
    library.sidecars.store.commit(made_of(ONE), [DATA])
    assert kinds(library) == ["sidecar_orphan"]
    mend(library)
    assert library.sidecars.store.usage() == 0


def test_files_never_finished_are_removed(library: Library) -> None:
    add_and_remember(library, ONE)
    places = [library.store.path(pieces(ONE)[0].digest).parent, library.sidecars.store.path(keep(library, ONE)).parent]
    for folder in (library.home.root, library.texts.folder, *places):
        abandon(folder)
    assert kinds(library) == ["temporary_file"] * 4
    mend(library)


def test_a_kept_text_that_is_missing_or_damaged_is_written_again(library: Library) -> None:
    row = add_and_remember(library, ONE, TWO)
    saved = library.texts.load(row.id)
    library.texts.path(row.id).unlink()
    assert kinds(library) == ["text_missing"]
    mend(library)
    assert library.texts.load(row.id).assignments == saved.assignments
    flip(library.texts.path(row.id), 200)
    assert kinds(library) == []
    assert kinds(library, deep=True) == ["text_damaged"]
    mend(library, deep=True)
    assert library.texts.load(row.id).document["text"] == ONE + TWO


def test_a_document_the_catalog_lost_is_brought_back(library: Library) -> None:
    row = add_and_remember(library, ONE)
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM documents")
    assert kinds(library)[0] == "document_lost"
    assert "The document is back." in mend(library)
    assert library.parts.of(row.id)[0].state == "ready"


def test_a_lost_document_whose_text_is_damaged_is_kept_aside(library: Library) -> None:
    row = add_and_remember(library, ONE)
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM documents")
    library.texts.path(row.id).write_text("{")
    mend(library, deep=True)
    assert library.texts.path(row.id).with_name(f"{row.id}.json.damaged").read_text() == "{"


def test_a_chat_without_a_file_gets_it_again(library: Library) -> None:
    chat = library.chats.create("tiny")
    library.chats.add_user_message(chat.id, None, "Who speaks?")
    saved = library.transcripts.load(chat.id)
    library.transcripts.path(chat.id).unlink()
    assert kinds(library) == ["chat_missing"]
    mend(library)
    assert library.transcripts.load(chat.id) == saved
    flip(library.transcripts.path(chat.id), 150)
    assert kinds(library) == []
    assert kinds(library, deep=True) == ["chat_damaged"]
    mend(library, deep=True)
    assert library.transcripts.load(chat.id) == saved


def test_a_chat_the_catalog_lost_is_brought_back(library: Library) -> None:
    chat = library.chats.create("tiny")
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM chats")
    assert kinds(library) == ["chat_lost"]
    assert mend(library) == ["The chat is back."]
    assert library.chats.messages(chat.id) == [asked]


def test_a_lost_chat_whose_file_is_damaged_is_kept_aside(library: Library) -> None:
    chat = library.chats.create("tiny")
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM chats")
    library.transcripts.path(chat.id).write_text("{")
    mend(library)
    assert library.transcripts.path(chat.id).with_name(f"{chat.id}.json.damaged").read_text() == "{"


def test_rows_that_belong_to_nothing_are_removed(library: Library) -> None:
    row = add_and_remember(library, ONE)
    other = Database(library.home.catalog)
    other.execute("INSERT INTO jobs (document_id, model, state, position, created_at, updated_at) VALUES ('gone', 'm', 'queued', 1, 1, 1)")
    other.close()
    assert kinds(library) == ["catalog_rows"]
    mend(library)
    assert library.jobs.all() == []
    assert library.documents.get(row.id)


def test_a_search_index_that_does_not_fit_is_made_again(library: Library) -> None:
    row = add_and_remember(library, ONE)
    with library.catalog.transaction() as db:
        db.execute("UPDATE part_texts SET text = 'something else entirely'")
    assert kinds(library, deep=True) == ["search_index", "search_index"]
    mend(library, deep=True)
    assert library.search.rank_parts("entirely", [row.id])


def test_a_search_index_that_is_damaged_is_told_and_made_again(library: Library) -> None:
    row = add_and_remember(library, ONE)
    with library.catalog.transaction() as db:
        db.execute("UPDATE parts_words_data SET block = x'00' WHERE id > 10")
    library.close()
    with pytest.raises(LongshelfError) as caught:
        library.search.rank_parts("bright", [row.id])
    assert caught.value.kind == "search_damaged"
    library.close()
    assert kinds(library, deep=True) == ["search_index"]
    mend(library, deep=True)
    assert library.search.rank_parts("bright", [row.id])


def test_a_removal_that_was_interrupted_is_finished(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    row = add_and_remember(library, ONE)
    monkeypatch.setattr(library.memory, "finish_removals", lambda: 0)
    library.memory.remove_document(row.id)
    monkeypatch.undo()
    assert "removal_unfinished" in kinds(library)
    repair(library, [problem for problem in examine(library) if problem.kind == "removal_unfinished"])
    assert kinds(library) == []
    assert library.store.usage() == 0


def test_a_damaged_catalog_is_the_only_problem_told(library: Library) -> None:
    add_and_remember(library, ONE)
    library.close()
    page = Database(library.home.catalog).execute("SELECT rootpage FROM sqlite_master WHERE name = 'parts'").fetchone()[0]
    with library.home.catalog.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 64)
    (problem,) = examine(library)
    assert problem.kind == "catalog_damaged"
    assert [entry.done for entry in repair(library, [problem])] == ["It can't be mended in its place."]


def test_a_check_can_be_followed_and_stopped(library: Library) -> None:
    add_and_remember(library, ONE)
    seen: list[tuple[int, int]] = []
    examine(library, deep=True, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(number, 4) for number in range(1, 5)]
    with pytest.raises(Stopped):
        examine(library, deep=True, stop=lambda: True)
