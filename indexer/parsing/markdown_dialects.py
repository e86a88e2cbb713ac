"""What note takers and site generators add to Markdown, written as plain Markdown before it is read.

Wiki links and comments of Obsidian, callouts of it and GitHub, admonitions and tabs of MkDocs and Docusaurus, formulas
in backslashed brackets, MDX. Code is left as it is.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any
from urllib.parse import quote

import pyromark

from schemas.ids import WIKI

WITHOUT_FORMULAS = (
    pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_FOOTNOTES
)
OPTIONS = WITHOUT_FORMULAS | pyromark.Options.ENABLE_MATH
_Edit = tuple[int, int, bytes]

_CONTAINERS = re.compile(r"\n[> ]*(?:!!! |\?\?\?[+ ]|===[+!]{0,2} \"|:::|> ?\[!)")
_FENCE = re.compile(r"[> ]*(`{3,}|~{3,})")
_INDENTED = re.compile(
    r"( *)(?:(?:!!!|\?\?\?\+?) ?(?P<kind>[A-Za-z][\w-]*)(?: inline(?: end)?|(?: [\w-]+)*(?= *\")|)"
    r"|===[+!]{0,2}(?= *\"))(?: *\"(?P<title>.*)\")? *"
)
_FENCED = re.compile(
    r"([> ]*):{3,} *(?:\{?(?P<kind>[A-Za-z][\w-]*)\}?(?:\[(?P<label>.*)\])?(?P<title> .*?)?(?:\{[#.:][^{}]*\} *)?)?"
)
_CALLOUT = re.compile(r"([> ]*>) ?\[!(?P<kind>[A-Za-z][\w-]*)[^\]]*\][+-]?(?P<title>.*)")

_ATTRIBUTE = r"(?:[#.][\w:-]+|[\w:-]+=(?:\"[^\"\n]*\"|'[^'\n]*'))"
_ATTRIBUTES = rf"\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]+{_ATTRIBUTE})*[ \t]*\}}"
MARKS = (  # in running text: a sign of each, the mark, what is shown of it
    ("{", re.compile(rf"\A{_ATTRIBUTES}|(?<=\s){_ATTRIBUTES}(?=[ \t]*$)", re.MULTILINE), ""),
    ("==", re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]*[^\s=])==(?![=\w])"), r"\1"),  # highlighted
    ("~", re.compile(r"(?<=[A-Za-z)])~(\d{1,4})~"), r"\1"),  # a subscript: H~2~O
    ("^", re.compile(r"(?<=[\w)])\^([+-]?\w{1,4})\^"), r"^\1"),  # a superscript: 10^6^
    ("^", re.compile(r"(?:^|[ \t]+)\^[A-Za-z0-9-]{4,}[ \t]*$", re.MULTILINE), ""),  # the name of a block
)

_ADDED = re.compile(
    r"\^\[(?=[^\n]*\])|\[\[(?=[^\[\]\n\"'=$<>*?]+\]\](?![(\[]))|%%(?=[^\n]*%%|[^%\n]*\n)"
    r"|\\\((?<!\w\\\()(?=[^\n]{1,200}?\\\))|\\\[(?![\w -]{1,80}\\\])(?=[ \t]*\n|[^\n]{1,200}?\\\])"
    r"|</[A-Z][\w.]+\s*>|<[A-Z][\w.]+(?:\s[^<>]*)?/>"
)
_WIKI_LINK = re.compile(rb"(?<![\w\]\\])(!?)\[\[([^\[\]|#\n]*)(#[^\[\]|\n]*)?(?:\\?\|([^\[\]\n]*))?\]\](?![(\[])")
_INLINE_NOTE = re.compile(rb"[ \t]*\^\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+)\]")
_NO_NOTE = re.compile(rb"[\"'$=<>*?]|\s+[-!]|[\s\d,.]*\Z")  # what a shell's test, an array or a citation begins with
_MEDIA = re.compile(rb".*\.(?:png|jpe?g|gif|svg|webp|avif|bmp|mp[34]|webm|wav)\Z", re.IGNORECASE)
_SIZE = re.compile(rb"\d+(?:x\d+)?")
_MARKUP = re.compile(rb"([\\*_`~$<&])")
_COMMENT = re.compile(rb"(?<!\S)%%(?!%)"), re.compile(rb"(?<!%)%%(?!\S)")
_MDX_COMMENT = re.compile(rb"\{/\*"), re.compile(rb"\*/\}")
_FORMULAS = (
    (re.compile(rb"(?<![\w\\])\\{1,2}\("), re.compile(rb"\\{1,2}\)"), b"$"),
    (re.compile(rb"(?<![\w\\])\\{1,2}\["), re.compile(rb"\\{1,2}\]"), b"$$"),
)
_FORMULA = re.compile(rb"(?!.*(?:\$|\n[ \t]*\n))(?:.*[\\^_={}+*/<>]|\s*\w\s*\Z)", re.DOTALL)
_INDENTATION = re.compile(rb"^[ \t]+", re.MULTILINE)
_MODULE = re.compile(rb"(?:import|export)\s+[\w{*'\"]")
_BRACES = rb"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_TAG = rb"<(/?)([A-Z][\w.]+)((?:\s+(?:[\w:-]+(?:=(?:\"[^\"]*\"|'[^']*'|%b))?|%b))*)\s*(/?)>" % (_BRACES, _BRACES)
_COMPONENT_ALONE, _COMPONENT = re.compile(rb"^[ \t]*%b[ \t]*$" % _TAG, re.MULTILINE), re.compile(_TAG)
_CLOSED = re.compile(rb"</([A-Z][\w.]+)\s*>")
_READABLE = re.compile(  # attributes that are shown, and others of several words
    rb"\s(?:(?:title|label|header|summary|caption|alt|description|text)=|(?!class|style|d=)[\w-]+=(?=.[A-Z]\w* ))"
    rb"(?:\"([^\"]*)\"|'([^']*)')"
)
_VOID = (b"br", b"hr", b"img", b"input", b"link", b"meta")


def plain_markdown(text: str, *, is_mdx: bool) -> str:
    """The text with what is not CommonMark rewritten; itself where there is nothing."""
    if _CONTAINERS.search(f"\n{text}"):
        text = "\n".join(_without_containers(text.split("\n")))
    if not is_mdx and not _ADDED.search(text):
        return text
    text = edited(text.encode(), _Source(text, is_mdx=is_mdx).edits())
    return edited(text.encode(), _Source(text, is_mdx=True).indented) if is_mdx else text


def edited(source: bytes, edits: list[_Edit]) -> str:
    """The source with each (start, end, replacement), the first and longest of those that overlap."""
    pieces: list[bytes] = []
    at = 0
    for start, end, replacement in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start >= at:
            pieces += (source[at:start], replacement)
            at = end
    return b"".join((*pieces, source[at:])).decode()


def _without_containers(lines: list[str]) -> Iterator[str]:
    """The lines, with a title for what begins a container, whose content moves out to where the title is."""
    margins: list[int] = []
    fence = ""
    for written in lines:
        bare = written.lstrip(" ")
        indentation = len(written) - len(bare)
        while bare and margins and indentation < margins[-1]:
            margins.pop()
            fence = ""
        line = written[min(indentation, 4 * len(margins)) :]
        if mark := _FENCE.match(line):
            ends = mark[1].startswith(fence) and not line[mark.end() :].strip()
            fence = mark[1] if not fence else "" if ends else fence
        elif fence or not (match := _INDENTED.fullmatch(line) or _FENCED.fullmatch(line) or _CALLOUT.fullmatch(line)):
            pass
        else:
            if match.re is _INDENTED:
                margins.append(indentation + 4)
            named = match.groupdict(default="")
            kind, title = named["kind"].capitalize(), (named.get("label") or named["title"]).strip()
            edge = match[1]
            yield from (edge, f"{edge} {kind}: {title}" if kind and title else f"{edge} {kind or title}", edge)
            continue
        yield line


class _Source:
    """A document's bytes, and where code and formulas are in them."""

    def __init__(self, text: str, *, is_mdx: bool) -> None:
        self._source = text.encode()
        self._is_mdx = is_mdx
        self.indented: list[_Edit] = []  # blocks that would be code, but for components around them
        self._modules: list[_Edit] = []
        self._code: list[tuple[int, int]] = []
        self._html: list[tuple[int, int]] = []
        self._labels = {label.encode() for label in pyromark.reference_definitions(text, options=OPTIONS)}
        events: Iterator[tuple[Any, Any]] = pyromark.events_with_range(text, options=OPTIONS)
        for event, place in events:
            name, detail = next(iter(event.items())) if isinstance(event, dict) else (event, "")
            kind = detail if isinstance(detail, str) else next(iter(detail), "")
            start, end = place["start"], place["end"]
            if name in ("Code", "InlineMath", "DisplayMath") or (name == "Start" and kind == "CodeBlock"):
                self._code.append((start, end))
                if detail == {"CodeBlock": "Indented"}:
                    start = self._source.rfind(b"\n", 0, start) + 1
                    self.indented.append((start, end, _INDENTATION.sub(b"", self._source[start:end])))
            elif name == "Start" and kind == "HtmlBlock":
                self._html.append((start, end))
            elif is_mdx and name == "Start" and kind == "Paragraph" and _MODULE.match(self._source, start):
                self._modules.append((start, end, b"\n"))

    def edits(self) -> list[_Edit]:
        edits = list(self._modules)
        for opening, closing in (_COMMENT, _MDX_COMMENT) if self._is_mdx else (_COMMENT,):
            edits += [(*place, b"") for place in self._between(opening, closing)]
        for opening, closing, mark in _FORMULAS:
            for begin, end in self._between(opening, closing):
                inner = self._source[begin:end].strip(b"\\")[1:-1].rstrip(b"\\").strip()
                if _FORMULA.match(inner):
                    edits.append((begin, end, mark + inner + mark))
        closed = set(_CLOSED.findall(self._source))
        edits += self._replaced(_WIKI_LINK, self._wiki_link)
        edits += self._replaced(_INLINE_NOTE, lambda match: b" (%b)" % match[1])
        edits += self._replaced(_COMPONENT_ALONE, lambda match: self._component(match, closed, b"\n\n%b\n"))
        return edits + self._replaced(_COMPONENT, lambda match: self._component(match, closed, b" %b "))

    @staticmethod
    def _is_in(places: list[tuple[int, int]], at: int) -> bool:
        number = bisect_right(places, at, key=itemgetter(0)) - 1
        return number >= 0 and at < places[number][1]

    def _between(self, opening: re.Pattern[bytes], closing: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
        """From each opening outside code to the next closing."""
        at = 0
        while begin := opening.search(self._source, at):
            at = begin.end()
            if self._is_in(self._code, begin.start()):
                continue
            if not (end := closing.search(self._source, at)):
                break
            yield begin.start(), (at := end.end())

    def _replaced(self, pattern: re.Pattern[bytes], replace: Callable[[re.Match[bytes]], bytes | None]) -> list[_Edit]:
        return [
            (*match.span(), replacement)
            for match in pattern.finditer(self._source)
            if not self._is_in(self._code, match.start()) and (replacement := replace(match)) is not None
        ]

    def _wiki_link(self, match: re.Match[bytes]) -> bytes | None:
        """A link whose target begins with WIKI; an image for an embedded one. None for brackets that mean no note."""
        written, part, alias = match[2], (match[3] or b"").strip(b"# "), (match[4] or b"").strip()
        name = written.strip(b"\\ \t")
        is_none = (not name and not part) or (written and _NO_NOTE.match(written)) or name in self._labels
        if is_none or self._is_in(self._html, match.start()):
            return None
        if match[1] and _MEDIA.match(name):
            return b"![%b](%b)" % (name if not alias or _SIZE.fullmatch(alias) else alias, quote(name).encode())
        heading = b"" if part.startswith(b"^") else part.replace(b"#", b" > ")
        shown = alias or _MARKUP.sub(rb"\\\1", b" > ".join(word for word in (name, heading) if word)) or part
        return b"[%b](%b)" % (shown, WIKI.encode() + quote(name).encode()) if name else shown

    @staticmethod
    def _component(match: re.Match[bytes], closed: set[bytes], shown_as: bytes) -> bytes | None:
        """The readable attributes; None for what is no component, such as the parameter of a generic type."""
        name = match[2]
        if name.lower() in _VOID or name.isupper() or not (match[4] or name in closed):
            return None
        shown = b" ".join(first or second for first, second in _READABLE.findall(match[3]))
        return shown_as % shown if shown or shown_as[:1] != b" " else b""
