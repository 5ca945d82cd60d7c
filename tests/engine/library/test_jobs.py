"""The queue of reading jobs."""

from __future__ import annotations

import pytest

from engine.errors import LongshelfError
from engine.library.jobs import Job
from engine.library.library import Library
from tests.engine.library.shelf import new


def queue(library: Library, count: int = 3) -> list[Job]:
    return [library.jobs.add(library.documents.add(new(title=str(number))).id, "tiny") for number in range(count)]


def order(library: Library) -> list[int]:
    return [job.id for job in library.jobs.all()]


def test_jobs_are_claimed_in_the_order_they_came(library: Library) -> None:
    jobs = queue(library)
    claimed = [library.jobs.claim() for _ in range(4)]
    assert [job.id if job else None for job in claimed] == [*(job.id for job in jobs), None]
    assert {job.state for job in library.jobs.all()} == {"running"}


def test_a_document_is_queued_once_for_each_model(library: Library) -> None:
    (job,) = queue(library, 1)
    assert library.jobs.add(job.document_id, "tiny") == job
    assert library.jobs.add(job.document_id, "other").id != job.id


def test_adding_a_paused_document_again_queues_it(library: Library) -> None:
    (job,) = queue(library, 1)
    library.jobs.pause(job.id, "the disk is full")
    assert library.jobs.get(job.id).reason == "the disk is full"
    assert library.jobs.add(job.document_id, "tiny").state == "queued"
    assert library.jobs.get(job.id).reason == ""


def test_one_job_or_all_are_paused_resumed_and_cancelled(library: Library) -> None:
    first, second, third = queue(library)
    library.jobs.claim()
    assert [job.id for job in library.jobs.pause()] == [first.id, second.id, third.id]
    assert library.jobs.claim() is None
    assert [job.state for job in library.jobs.resume(second.id)] == ["queued"]
    assert [job.id for job in library.jobs.resume()] == [first.id, third.id]
    assert [job.state for job in library.jobs.cancel(first.id)] == ["cancelled"]
    assert order(library) == [second.id, third.id]
    library.jobs.cancel()
    assert order(library) == []


def test_what_ended_can_be_tried_again_and_what_is_alive_is_left(library: Library) -> None:
    first, second, third = queue(library)
    library.jobs.set_state(first.id, "failed", "no model")
    library.jobs.set_state(second.id, "cancelled")
    assert [job.id for job in library.jobs.retry()] == [first.id]
    assert [job.id for job in library.jobs.retry(second.id)] == [second.id]
    assert library.jobs.retry(third.id) == []
    assert order(library) == [first.id, second.id, third.id]


def test_a_job_can_be_moved_anywhere_in_the_queue(library: Library) -> None:
    first, second, third = (job.id for job in queue(library))
    library.jobs.move_before(third, first)
    assert order(library) == [third, first, second]
    library.jobs.move_before(second, first)
    assert order(library) == [third, second, first]
    library.jobs.move_before(third, None)
    assert order(library) == [second, first, third]


def test_a_job_can_be_moved_before_all_that_wait(library: Library) -> None:
    running, second, third, fourth = (job.id for job in queue(library, 4))
    library.jobs.claim()
    library.jobs.move_first(third)
    assert order(library) == [running, third, second, fourth]
    library.jobs.move_first(fourth, behind=[third])
    assert order(library) == [running, third, fourth, second]
    library.jobs.move_first(running)
    assert order(library)[0] == running


def test_what_was_running_when_the_engine_ended_is_queued_again(library: Library) -> None:
    first, second, _ = queue(library)
    library.jobs.claim()
    library.jobs.pause(second.id)
    assert [job.id for job in library.jobs.requeue_interrupted()] == [first.id]
    assert library.jobs.get(second.id).state == "paused"


def test_jobs_go_with_their_document(library: Library) -> None:
    (job,) = queue(library, 1)
    library.memory.remove_document(job.document_id)
    with pytest.raises(LongshelfError) as caught:
        library.jobs.get(job.id)
    assert caught.value.kind == "not_found"
