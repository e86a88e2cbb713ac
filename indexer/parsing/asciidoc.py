"""AsciiDoc (https://docs.asciidoctor.org/asciidoc/latest), line by line made into the Markdown that says the same."""

import re
from collections.abc import Iterator

import msgspec

from indexer.documents import ParsedDocument
from indexer.parsing import markdown
from indexer.parsing.front_matter import as_front_matter

_HEADING = re.compile(r"(={1,6}|#{1,6})\s+(\S.*)")
_ATTRIBUTE = re.compile(r":([\w-]+):\s*(.*)")
_AUTHOR = re.compile(r"((?:\w[\w.'-]*\s?){1,4})(?:\s*<[^<>]*>)?(?:;.*)?")
_CODE = re.compile(r"(-{4,}|\.{4,}|`{3,}|\+{4,})\s*(\w*)\s*")
_FRAME = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--)\s*")
_HIDDEN = re.compile(r"/{4,}\s*")
_BLOCK_ATTRIBUTES = re.compile(r"\[[^\[\]]*\]\s*|\[\[[^\]]*\]\]\s*")
_LANGUAGE = re.compile(r"\[source,\s*([\w+-]+)")
_TITLE = re.compile(r"\.([^\s.].*)")
_ITEM = re.compile(r"\s*(\*{1,6}|-|\.{1,6})\s+(\S.*)")
_TERM = re.compile(r"(\S.*?):{2,4}(?:\s+(.*))?")
_INCLUDE = re.compile(r"^include::([^\[\n]*)\[[^\]\n]*\][ \t]*$", re.MULTILINE)
_CELL = re.compile(r"(?<!\\)(?:\d+\+|\.\d+\+)?[<^>]?[aehlmsv]?\|")
_LEFT_OUT = (_INCLUDE, _BLOCK_ATTRIBUTES, _FRAME)
_NOT_READ = "The file {!r}, which it includes, was not read: load it too."
_IMAGE = re.compile(r"image::?([^\[\s]+)\[([^\],]*)[^\]]*\]")
_LINK = re.compile(r"(?:link:|xref:|(?=https?://))([^\s\[\]]+)\[([^\]]*)\]")
_CROSS_REFERENCE = re.compile(r"<<([^,>]+)(?:,\s*([^>]+))?>>")
_BOLD = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])")


def parse(text: str) -> ParsedDocument:
    """Document attributes are its fields. Files that it includes are not read."""
    parsed = markdown.parse("\n".join(_markdown(text.split("\n"))))
    left_out = [_NOT_READ.format(name[:80]) for name in dict.fromkeys(_INCLUDE.findall(text))]
    return msgspec.structs.replace(parsed, notes=(*parsed.notes, *left_out))


def _markdown(lines: list[str]) -> Iterator[str]:
    header, at = _header(lines)
    yield from header
    until: str | None = None  # the line that ends a block of code or a comment
    shown = False
    table: list[list[str]] | None = None
    language = ""
    for line in lines[at:]:
        if until is not None:
            if line.rstrip() == until:
                until = None
                if shown:
                    yield "~~~~"
            elif shown:
                yield line
        elif (code := _CODE.fullmatch(line)) or _HIDDEN.fullmatch(line):
            until, shown = (code[1] if code else line.rstrip()), code is not None
            if code:
                yield f"\n~~~~{code[2] or language}"
            language = ""
        elif line.rstrip() == "|===":
            yield from _rows(table or [])
            table = [] if table is None else None
        elif table is not None:
            table.append([cell.strip() for cell in _CELL.split(line) if cell.strip()])
        else:
            named = _LANGUAGE.match(line)
            language = named[1] if named else language
            yield _line(line)


def _rows(lines: list[list[str]]) -> Iterator[str]:
    """A table has as many columns as its first line has cells; the others may be below each other."""
    columns = next((len(cells) for cells in lines if cells), 1)
    cells = [cell for line in lines for cell in line]
    for start in range(0, len(cells), columns):
        yield "\n" + " — ".join(map(_inline, cells[start : start + columns]))
    yield ""


def _header(lines: list[str]) -> tuple[list[str], int]:
    """The document's title, author and attributes as Markdown, and where its text begins: behind an empty line where
    there is a title."""
    title, fields, until = "", dict[str, str](), 0
    for line in lines:
        if attribute := _ATTRIBUTE.fullmatch(line):
            fields[attribute[1]] = attribute[2].strip()
        elif not title and (heading := _HEADING.fullmatch(line)) and len(heading[1]) == 1:
            title = heading[2]
        elif title and line.strip() and (author := _AUTHOR.fullmatch(line)):
            fields["author"] = author[1]
        elif not line.startswith("//") and (title or fields or line.strip()):
            break
        until += 1
    front = as_front_matter({name: value for name, value in fields.items() if value})
    return [*front, f"# {_inline(title)}" if title else "", ""], until


def _line(line: str) -> str:
    if line.startswith("//") or line.strip() == "+" or any(each.fullmatch(line) for each in _LEFT_OUT):
        return ""
    if heading := _HEADING.fullmatch(line):
        line = f"\n{'#' * len(heading[1])} {heading[2]}\n"
    elif item := _ITEM.fullmatch(line):
        line = f"{'    ' * (len(item[1]) - 1)}{'1.' if item[1][0] == '.' else '-'} {item[2]}"
    elif title := _TITLE.fullmatch(line):
        line = f"\n**{title[1]}**\n"
    elif (term := _TERM.fullmatch(line)) and "://" not in term[1]:
        line = f"\n**{term[1]}**: {term[2] or ''}"
    return _inline(line)


def _inline(text: str) -> str:
    text = _IMAGE.sub(r"![\2](<\1>)", text)
    text = _LINK.sub(lambda link: f"[{link[2].rstrip('^') or link[1]}](<{link[1]}>)", text)
    text = _CROSS_REFERENCE.sub(lambda reference: reference[2] or reference[1], text)
    return _BOLD.sub(r"**\1**", text)
