"""Plain text: paragraphs, lists and what is laid out by hand. Headings are not guessed."""

import re
from itertools import groupby

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import TextAssembler
from indexer.parsing.header_blocks import first_value, named, split_header_block

_ITEM = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S")
_COLUMNS = re.compile(r"\S(?: {3,}|\t+)\S|\|.*\|")
_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}]{1,2000}")
_SHORT_LINE = 40
_URL_TAIL = ".,;:!?)]*_"


def parse(text: str) -> ParsedDocument:
    """Lines of running text are joined; a block of header lines at the start becomes fields."""
    header, body = split_header_block(text)
    assembler = TextAssembler()
    assembler.field_lines(header)
    write_plain(assembler, body)
    fields = named(header)
    return assembler.finish(first_value(fields, "title") or first_value(fields, "subject"), fields)


def write_plain(assembler: TextAssembler, text: str) -> None:
    """Write text as it was laid out for a screen of fixed width, with its web addresses as links."""
    for is_blank, group in groupby(text.split("\n"), key=_is_blank):
        if is_blank:
            continue
        assembler.break_block()
        lines = _dedented(list(group))
        if len(lines) > 1 and any(_ITEM.match(line) for line in lines):
            for line in lines:
                if _ITEM.match(line):
                    assembler.break_line()
                write_linked(assembler, line.strip() + " ")
        elif _is_laid_out(lines):
            assembler.verbatim("\n".join(lines))
        else:
            write_linked(assembler, "\n".join(lines))
        assembler.break_block()


def write_linked(assembler: TextAssembler, text: str) -> None:
    """Write inline text; the web addresses in it become links."""
    at = 0
    for match in _URL.finditer(text):
        assembler.write(text[at : match.start()])
        url = match[0].rstrip(_URL_TAIL)
        mark = assembler.mark()
        assembler.write(url)
        assembler.link(url, mark)
        at = match.start() + len(url)
    assembler.write(text[at:])


def _dedented(lines: list[str]) -> list[str]:
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[margin:] for line in lines]


def _is_blank(line: str) -> bool:
    return not line or line.isspace()


def _is_laid_out(lines: list[str]) -> bool:
    """Whether line breaks carry meaning: tables, code, verse and addresses, not running text."""
    if len(lines) < 2:
        return False
    if any(line[:1].isspace() for line in lines[1:]):
        return True
    if sum(1 for line in lines if _COLUMNS.search(line)) * 2 >= len(lines):
        return True
    return max(len(line.strip()) for line in lines) < _SHORT_LINE
