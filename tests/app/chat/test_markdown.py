"""Markdown of a model, as HTML that hides nothing and fetches nothing."""

from __future__ import annotations

import pytest

from app.chat import markdown
from app.chat.markdown import END_MARK, MARK


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**강조(bold)**는", "<strong>강조(bold)</strong>는"),
        ("**중요:**다음", "<strong>중요:</strong>다음"),
        ("이것은**“인용”**입니다", "이것은<strong>“인용”</strong>입니다"),
        ("「**漢字！**です」", "<strong>漢字！</strong>です"),
        ("a **b** c *d*", "a <strong>b</strong> c <em>d</em>"),
        ("가*나*다", "가<em>나</em>다"),
    ],
)
def test_emphasis_works_beside_hangul_and_han(text: str, html: str) -> None:
    assert html in markdown.render(text)


@pytest.mark.parametrize("text", ["2 * 3 * 4", "a ** b ** c", "snake_case_name", "변수_이름_값", "**not closed", "f(*args, **kwargs)"])
def test_what_is_not_emphasis_stays_as_it_stands(text: str) -> None:
    assert markdown.render(text).strip() == f"<p>{text}</p>"


@pytest.mark.parametrize(
    "text", ["<smirk> yes", "vector<int> x; Map<String, List<Integer>> y", "<script>alert(1)</script>", "<img src=x onerror=y>"]
)
def test_text_shaped_like_a_tag_is_shown(text: str) -> None:
    from html import unescape

    html = markdown.render(text)
    assert unescape(html.strip().removeprefix("<p>").removesuffix("</p>")) == text
    assert "<smirk" not in html
    assert "<script" not in html
    assert "<img" not in html


def test_an_image_is_its_words_and_nothing_to_fetch() -> None:
    html = markdown.render("![a cat](http://example.com/cat.png)")
    assert "[a cat]" in html
    assert "example.com" not in html


def test_a_link_that_would_run_something_is_no_link() -> None:
    assert "<a" not in markdown.render("[click](javascript:alert(1))")


@pytest.mark.parametrize("text", [r"\(x^2\)", r"\[a + b\]"])
def test_mathematics_keeps_its_backslashes(text: str) -> None:
    assert text in markdown.render(text)


def test_a_single_line_end_breaks_the_line() -> None:
    assert "one<br" in markdown.render("one\ntwo")


def test_a_half_open_fence_is_code_already() -> None:
    assert "a &lt; b" in markdown.render("```c\na < b")


def test_a_marked_number_becomes_a_link() -> None:
    assert '<a href="cite:12">[12]</a>' in markdown.render(f"so it stands{MARK}12{END_MARK}.")


def test_each_block_of_code_can_be_copied_as_it_was_written() -> None:
    text = "```py\na = 1\n```\n\nand\n\n    b < 2\n"
    assert markdown.code_blocks(text) == ["a = 1\n", "b < 2\n"]
    html = markdown.render(text, "Copy code")
    assert 'href="copy:0"' in html
    assert 'href="copy:1"' in html


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("one", "one"),
        ("one\n\ntwo *x*", "two *x*"),
        ("one\n\n- a\n- b\n\n- c", "- a\n- b\n\n- c"),
        ("one\n\n```\ncode\n\nmore", "```\ncode\n\nmore"),
        ("# h\ntext", "text"),
    ],
)
def test_the_last_block_is_what_may_still_change(text: str, last: str) -> None:
    assert text[markdown.last_block_start(text) :] == last
