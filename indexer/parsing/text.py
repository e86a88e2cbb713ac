"""Plain text (paragraphs, lists, hand-made layout; headings are not guessed) and source code."""

import re
from itertools import groupby

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import DocumentBuilder, without_invisible
from indexer.parsing.front_matter import field_name, first_value, split_header_block

_ITEM = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S")
_COLUMNS = re.compile(r"\S(?: {3,}|\t+)\S|\|.*\|")
_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}]{1,2000}")
_SHORT_LINE = 40
_SENTENCE_ENDS = (".", "!", "?", "。", "…")
_CUT_SENTENCE = re.compile(  # a line that ends within a sentence of Han or kana, and a full stop at the end
    r"[\u3041-\u30ff\u3400-\u9fff]\n[\u3041-\u30ff\u3400-\u9fff](?s:.*)[。！？…」』）]\s*\Z"
)
_URL_TAIL = ".,;:!?)]*_"


def parse(text: str) -> ParsedDocument:
    """Lines of running text are joined; a header block at the start becomes fields."""
    header, body = split_header_block(text)
    builder = DocumentBuilder()
    builder.field_lines(header)
    write_plain(builder, body)
    fields = [(field_name(name), value) for name, value in header]
    return builder.finish(first_value(fields, "title") or first_value(fields, "subject"), fields)


def parse_body(text: str) -> ParsedDocument:
    """The same without a header block."""
    builder = DocumentBuilder()
    write_plain(builder, text)
    return builder.finish()


def parse_source_code(text: str) -> ParsedDocument:
    """One section with the code's lines and indentation; trailing blanks are dropped."""
    builder = DocumentBuilder()
    builder.verbatim(text)
    return builder.finish()


def write_plain(builder: DocumentBuilder, text: str) -> None:
    """Write text laid out for a fixed-width screen, with its web addresses as links."""
    for is_blank, group in groupby(without_invisible(text).split("\n"), key=_is_blank):
        if is_blank:
            continue
        builder.break_block()
        lines = _dedented(list(group))
        if len(lines) > 1 and any(_ITEM.match(line) for line in lines):
            for line in lines:
                if _ITEM.match(line):
                    builder.break_line()
                write_linked(builder, line.strip() + " ")
        elif _is_laid_out(lines):
            builder.verbatim("\n".join(lines))
        else:
            write_linked(builder, "\n".join(lines))
        builder.break_block()


def field_sentence(name: str, value: str) -> str:
    """`Field: value.`, as a row of a table is read."""
    return f"{name}: {value}" if value.endswith(_SENTENCE_ENDS) else f"{name}: {value}."


def write_linked(builder: DocumentBuilder, text: str) -> None:
    """Write inline text with its web addresses as links."""
    at = 0
    for match in _URL.finditer(text):
        builder.write(text[at : match.start()])
        url = match[0].rstrip(_URL_TAIL)
        mark = builder.mark()
        builder.write(url)
        builder.link(url, mark)
        at = match.start() + len(url)
    builder.write(text[at:])


def _dedented(lines: list[str]) -> list[str]:
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[margin:] for line in lines]


def _is_blank(line: str) -> bool:
    return not line or line.isspace()


def _is_laid_out(lines: list[str]) -> bool:
    """Whether line breaks carry meaning, as in tables, code, verse and addresses."""
    if len(lines) < 2:
        return False
    if any(line[:1].isspace() for line in lines[1:]):
        return True
    if sum(1 for line in lines if _COLUMNS.search(line)) * 2 >= len(lines):
        return True
    text = "\n".join(lines)
    if not text.isascii() and _CUT_SENTENCE.search(text):
        return False
    return max(len(line.strip()) for line in lines) < _SHORT_LINE
