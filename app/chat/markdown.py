"""Markdown to the HTML that Qt's rich text shows, for text that a model wrote: CommonMark with tables and strikethrough.

No HTML of the model's gets through: text shaped like a tag is shown as it stands, images are replaced by their words, and links leave only
as links. Emphasis next to Hangul, kana and Han works, which CommonMark's flanking rule forbids: `**강조(bold)**는` is bold here. The
backslash of `\\(…\\)` and `\\[…\\]` stays: it is mathematics, not an escape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# A number of a citation travels through Markdown between these two private characters and comes out as a link.
MARK, END_MARK = "\ue000", "\ue001"
CITE, COPY = "cite:", "copy:"

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff]"
)
_NUMBER = re.compile(f"{MARK}([0-9]+){END_MARK}")


def render(text: str, copy_words: str = "") -> str:
    """HTML of `text`. With `copy_words`, each block of code gets a link of these words to `copy:N`, N counting from 0."""
    html: str = _parser().render(text, {"copy_words": copy_words, "code_blocks": 0}).strip()
    return _NUMBER.sub(rf'<sup><a href="{CITE}\1">[\1]</a></sup>', html)


def code_blocks(text: str) -> list[str]:
    """The content of the blocks of code in `text`, in the order in which `render` numbers them."""
    return [token.content for token in _parser().parse(text) if token.type in ("fence", "code_block")]


def last_block_start(text: str) -> int:
    """Where the last top-level block of `text` starts, in characters: what comes before doesn't change when text is appended."""
    starts = [token.map[0] for token in _parser().parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    if len(starts) < 2:
        return 0
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: starts[-1]])


class _Html(RendererHTML):
    """What Qt's rich text needs: code in a table cell (its own background), no images, no other schemes."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return escape(f"[{tokens[idx].content or tokens[idx].attrGet('src')}]")

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self._code(tokens[idx].content, tokens[idx].info.strip().split(maxsplit=1), env)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self._code(tokens[idx].content, [], env)

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<table class="table" cellspacing="0" cellpadding="5" border="1" style="border-collapse: collapse">'

    @staticmethod
    def _code(content: str, info: list[str], env: EnvType) -> str:
        number = env["code_blocks"]
        env["code_blocks"] = number + 1
        copy = f'<a href="{COPY}{number}">{escape(env["copy_words"])}</a>' if env["copy_words"] else ""
        head = "&nbsp;&nbsp;".join(filter(None, (escape(info[0]) if info else "", copy)))
        return (
            '<table class="code" width="100%" cellspacing="0" cellpadding="6"><tr><td class="code">'
            f'<p class="codehead" align="right">{head}</p>'
            f"<pre>{escape(content.rstrip(chr(10)))}</pre></td></tr></table>\n"
        )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Html).enable(["table", "strikethrough"])
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.before("escape", "mathematics", _mathematics)
    return parser


def _mathematics(state: StateInline, silent: bool) -> bool:
    pair = state.src[state.pos : state.pos + 2]
    if pair not in ("\\(", "\\)", "\\[", "\\]"):
        return False
    if not silent:
        state.pending += pair
    state.pos += 2
    return True


def _emphasis(state: StateInline, silent: bool) -> bool:
    """CommonMark's delimiter runs, where the neighbour outside a run of * may be CJK as if it were a space."""
    marker = state.src[state.pos]
    if silent or marker not in "*_":
        return False
    end = state.pos
    while end < state.posMax and state.src[end] == marker:
        end += 1
    before = state.src[state.pos - 1] if state.pos > 0 else " "
    after = state.src[end] if end < state.posMax else " "
    boundary_before = _is_boundary(before) or (marker == "*" and bool(_CJK.match(before)))
    boundary_after = _is_boundary(after) or (marker == "*" and bool(_CJK.match(after)))
    opens = not isWhiteSpace(ord(after)) and (not _is_punctuation(after) or boundary_before)
    closes = not isWhiteSpace(ord(before)) and (not _is_punctuation(before) or boundary_after)
    if marker == "_":
        opens, closes = opens and (not closes or _is_punctuation(before)), closes and (not opens or _is_punctuation(after))
    for _ in range(end - state.pos):
        token = state.push("text", "", 0)
        token.content = marker
        state.delimiters.append(
            Delimiter(marker=ord(marker), length=end - state.pos, token=len(state.tokens) - 1, end=-1, open=opens, close=closes)
        )
    state.pos = end
    return True


def _is_punctuation(character: str) -> bool:
    return isMdAsciiPunct(ord(character)) or isPunctChar(character)


def _is_boundary(character: str) -> bool:
    return isWhiteSpace(ord(character)) or _is_punctuation(character)
