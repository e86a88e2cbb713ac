"""Markdown (CommonMark with tables and strikethrough) with YAML front matter, by markdown-it-py."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.assembling import TextAssembler
from indexer.parsing.header_blocks import Fields, first_value, read_front_matter
from indexer.parsing.html import write_fragment
from indexer.parsing.limits import MAX_MARKDOWN_DEPTH
from indexer.parsing.text import write_linked

_MAX_INLINE_NESTING = 20
_LONGEST_RUN = 256  # markdown-it takes quadratic time over a longer run of emphasis marks
_LONG_RUN = re.compile(rf"([*_~])\1{{{_LONGEST_RUN},}}")
_SET_OFF = ("em_open", "strong_open")
_BLOCKS = ("paragraph", "blockquote", "bullet_list", "ordered_list")


def _tokens(text: str) -> list[Token]:
    """The blocks of the text. Below its deepest level markdown-it drops what it meets, so that level is refused."""
    reader = MarkdownIt("commonmark", {"maxNesting": MAX_MARKDOWN_DEPTH})
    reader.enable(["table", "strikethrough"]).use(front_matter_plugin)
    reader.core.ruler.before("inline", "bound_inline_nesting", _bound_inline_nesting)
    tokens = reader.parse(_LONG_RUN.sub(lambda run: run[1] * _LONGEST_RUN, text))
    if any(token.level >= MAX_MARKDOWN_DEPTH - 1 for token in tokens):
        raise UnparsableDocument("too_deep", f"The Markdown nests deeper than {MAX_MARKDOWN_DEPTH} levels.")
    return tokens


def parse(text: str) -> ParsedDocument:
    """The title is the front matter's, else the first heading of the first level."""
    assembler = TextAssembler()
    fields: Fields = []
    first_heading: str | None = None
    tokens = iter(_tokens(text))
    for token in tokens:
        match token.type:
            case "front_matter":
                fields = read_front_matter(token.content)
            case "heading_open":
                title = _heading(assembler, int(token.tag[1:]), next(tokens).children or [])
                if first_heading is None and token.tag == "h1":
                    first_heading = title
            case "table_open":
                _table(assembler, tokens)
            case _:
                _block(assembler, token)
    return assembler.finish(first_value(fields, "title") or first_heading, fields)


def _bound_inline_nesting(state: StateCore) -> None:
    """Deeper inline markup is text; its time grows with the depth allowed."""
    state.md.options["maxNesting"] = _MAX_INLINE_NESTING


def _block(assembler: TextAssembler, token: Token) -> None:
    match token.type:
        case "inline":
            _inline(assembler, token.children or [])
        case "fence" | "code_block":
            assembler.verbatim(token.content)
        case "html_block":
            assembler.break_block()
            write_fragment(assembler, token.content)
            assembler.break_block()
        case "list_item_open":
            assembler.begin_item(f"{token.info}." if token.info else "-")
        case "list_item_close":
            assembler.end_item()
        case kind if kind.startswith(_BLOCKS):
            assembler.break_block()


def _heading(assembler: TextAssembler, level: int, children: Sequence[Token]) -> str:
    assembler.begin_heading()
    _inline(assembler, children)
    return assembler.end_heading(level)


def _table(assembler: TextAssembler, tokens: Iterator[Token]) -> None:
    """Rows as lines, cells apart by a bar."""
    assembler.break_block()
    first_cell = True
    for token in tokens:
        match token.type:
            case "table_close":
                break
            case "tr_open":
                assembler.break_line()
                first_cell = True
            case "th_open" | "td_open":
                if not first_cell:
                    assembler.write(" | ")
                first_cell = False
            case "inline":
                _inline(assembler, token.children or [])
    assembler.break_block()


def _inline(assembler: TextAssembler, children: Sequence[Token]) -> None:
    spans: list[tuple[Token, int]] = []
    for token in children:
        if token.nesting == 1:
            spans.append((token, assembler.mark()))
        elif token.nesting == -1 and spans:
            _end_span(assembler, *spans.pop())
        else:
            _leaf(assembler, token, is_linked=any(opened.type == "link_open" for opened, _ in spans))


def _end_span(assembler: TextAssembler, opened: Token, mark: int) -> None:
    if opened.type == "link_open":
        assembler.link(str(opened.attrs.get("href", "")), mark)
    elif opened.type in _SET_OFF:
        assembler.emphasise(mark)


def _leaf(assembler: TextAssembler, token: Token, *, is_linked: bool) -> None:
    match token.type:
        case "text" if not is_linked:
            write_linked(assembler, token.content)
        case "text" | "code_inline":
            assembler.write(token.content)
        case "softbreak":
            assembler.write(" ")
        case "hardbreak":
            assembler.break_line()
        case "image":
            mark = assembler.mark()
            assembler.write(_plain(token.children or []))
            assembler.image(mark, str(token.attrs.get("title", "")))
        case "html_inline":
            _inline_tag(assembler, token.content)


def _inline_tag(assembler: TextAssembler, tag: str) -> None:
    """A lone tag says nothing by itself, but for breaks and images."""
    lowered = tag[:5].lower()
    if lowered.startswith("<br"):
        assembler.break_line()
    elif lowered.startswith("<img"):
        write_fragment(assembler, tag)


def _plain(children: Sequence[Token]) -> str:
    """The text of alternative text, which may be marked up itself."""
    pieces = (_plain(child.children) if child.children else child.content or " " for child in children)
    return "".join(pieces)
