"""Org (https://orgmode.org/worg/org-syntax.html), line by line made into the Markdown that says the same."""

import re
from collections.abc import Iterator

from indexer.documents import ParsedDocument
from indexer.parsing import markdown
from indexer.parsing.front_matter import as_front_matter

_KEYWORD = re.compile(r"#\+(\w+):\s*(.*)", re.IGNORECASE)
_HEADING = re.compile(r"(\*{1,6})\** +(?:(?:TODO|DONE|NEXT|WAITING)\b *)?(?:\[#[A-Z]\] *)?(.*?)(?:\s+:[\w@:]+:)?\s*")
_BEGIN = re.compile(r"\s*#\+BEGIN_(\w+)(?:\s+([\w-]+))?.*", re.IGNORECASE)
_END = re.compile(r"\s*#\+END_\w+\s*", re.IGNORECASE)
_DRAWER = re.compile(r"\s*:([A-Za-z_-]+):\s*")
_PLANNED = re.compile(r"\s*(?:SCHEDULED|DEADLINE|CLOSED): *[<\[].*")
_RULE = re.compile(r"\s*\|[-+]+\|\s*")
_LINK = re.compile(r"\[\[(?:file:)?([^\[\]]+?)(?:::[^\[\]]*)?\](?:\[([^\[\]]+)\])?\]")
_STYLES = (
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]*\S)\*(?![\w*])"), r"**\1**"),
    (re.compile(r"(?<![\w/:])/(?=\S)([^/\n]*\S)/(?![\w/])"), r"*\1*"),
    (re.compile(r"(?<![\w=~])[=~](?=\S)([^=~\n]*\S)[=~](?![\w=~])"), r"`\1`"),
)
_CODE = ("SRC", "EXAMPLE", "EXPORT")


def parse(text: str) -> ParsedDocument:
    """Its keywords (`#+TITLE:`, `#+AUTHOR:`) are its fields; drawers and planning are left out."""
    return markdown.parse("\n".join(_markdown(text.split("\n"))))


def _markdown(lines: list[str]) -> Iterator[str]:
    fields = {match[1].lower(): match[2].strip() for line in lines if (match := _KEYWORD.fullmatch(line))}
    yield from as_front_matter(fields)
    if title := fields.get("title"):
        yield f"# {title}\n"
    deeper = 1 if title else 0
    block = ""
    in_drawer = False
    for line in lines:
        if block:
            is_over = _END.fullmatch(line) is not None
            yield _in_block(block, line, is_over=is_over)
            block = "" if is_over else block
        elif begin := _BEGIN.fullmatch(line):
            block = begin[1].upper()
            yield f"\n~~~~{begin[2] or ''}" if block in _CODE else ""
        elif in_drawer or _DRAWER.fullmatch(line):
            in_drawer = line.strip().upper() != ":END:"
        else:
            yield _line(line, deeper)


def _in_block(block: str, line: str, *, is_over: bool) -> str:
    if block in _CODE:
        return "~~~~\n" if is_over else line
    if is_over or block == "COMMENT":
        return ""
    return f"> {_inline(line)}" if block == "QUOTE" else _inline(line)


def _line(line: str, deeper: int) -> str:
    if heading := _HEADING.fullmatch(line):
        return f"\n{'#' * min(6, len(heading[1]) + deeper)} {_inline(heading[2])}\n"
    if line.startswith("#") or _PLANNED.fullmatch(line) or _RULE.fullmatch(line):
        return ""
    if line.lstrip().startswith("|"):
        return "\n" + " — ".join(_inline(cell.strip()) for cell in line.strip().strip("|").split("|"))
    return _inline(line)


def _inline(text: str) -> str:
    for pattern, written in _STYLES:
        text = pattern.sub(written, text)
    return _LINK.sub(lambda link: f"[{link[2] or link[1]}](<{link[1]}>)", text)
