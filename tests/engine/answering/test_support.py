"""Signs that a document holds what is asked, and the rule that joins them."""

from __future__ import annotations

import pytest

from engine.answering.support import RULE, WINDOW, Evidence, Rule, coverage

TEXT = "The ferry of Coldharbour was bought from a widow. She wanted three cows for it.\n\n" + "Nothing else happened. " * 60


def test_a_question_in_the_text_s_own_words_is_covered() -> None:
    assert coverage("Who bought the ferry of Coldharbour?", [TEXT]) == 1.0


def test_forms_of_a_word_count_as_the_word() -> None:
    assert coverage("Which ferries? What was she wanting?", [TEXT]) == 1.0


def test_a_question_about_something_else_is_not_covered() -> None:
    assert coverage("How many senators are elected?", [TEXT]) == 0.0


def test_terms_that_stand_far_apart_do_not_count_together() -> None:
    near = coverage("zebra lion", ["zebra " + "x " * 20 + "lion"])
    far = coverage("zebra lion", ["zebra " + "x " * WINDOW + "lion"])
    assert (near, far) == (1.0, 0.5)


def test_each_text_is_looked_at_by_itself() -> None:
    assert coverage("zebra lion", ["zebra", "lion"]) == 0.5


def test_korean_words_are_found_with_other_particles() -> None:
    assert coverage("덕배는 감나무를 보았는가?", ["마당에는 늙은 감나무가 서 있었다. 덕배가 왔다. 그가 보았는가 하면"]) > 0.8
    assert coverage("덕배는 감나무를 보았는가?", ["작업장은 오전 여덟 시부터 연다."]) == 0.0


def test_a_question_without_terms_is_never_refused_for_its_words() -> None:
    assert coverage("What is this about?", [TEXT]) == 1.0


def test_the_rule_is_logistic_and_rises_with_each_sign() -> None:
    rule = Rule({"coverage": 2.0, "explained": 1.0}, -1.0, 0.5)
    assert rule.support(Evidence(coverage=0.5)) == pytest.approx(0.5)
    assert rule.support(Evidence(coverage=1.0)) > rule.support(Evidence(coverage=0.9))
    assert rule.support(Evidence(explained=1e9)) == pytest.approx(1.0)


def test_without_calibration_what_is_well_covered_and_explained_is_supported() -> None:
    assert RULE.support(Evidence(coverage=1.0, explained=0.3)) >= RULE.least
    assert RULE.support(Evidence(coverage=0.2, explained=0.1)) < RULE.least


def test_an_answer_in_the_document_s_own_words_is_supported_whatever_was_asked() -> None:
    assert RULE.support(Evidence(coverage=0.0, explained=0.0, verbatim=0.9)) >= RULE.least
    assert RULE.support(Evidence(coverage=0.0, explained=0.0, verbatim=0.5)) < RULE.least
