"""What note takers and site generators add to Markdown, written as plain Markdown before it is read.

Wiki links and comments of Obsidian, callouts of it and GitHub, admonitions and tabs of MkDocs and Docusaurus, formulas
in backslashed brackets, MDX. Code is left as it is.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from urllib.parse import quote

import pyromark

from schemas.ids import WIKI

OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_MATH
    | pyromark.Options.ENABLE_FOOTNOTES
)
_Edit = tuple[int, int, bytes]

_CONTAINERS = re.compile(r"\n[> ]*(?:!!! |\?\?\?[+ ]|===[+!]{0,2} \"|:::|> ?\[!)")
_FENCE = re.compile(r"[> ]*(`{3,}|~{3,})")
_INDENTED = re.compile(
    r"( *)(?:(?:!!!|\?\?\?\+?) ?(?P<kind>[A-Za-z][\w-]*)[ \w-]*|===[+!]{0,2} (?=\"))(?:\"(?P<title>.*)\")? *"
)
_FENCED = re.compile(r"([> ]*):{3,} *(?:\{?(?P<kind>[A-Za-z][\w-]*)\}?(?:\[(?P<bracketed>.*)\])?(?P<title> [^{]*)?.*)?")
_CALLOUT = re.compile(r"([> ]*>) ?\[!(?P<kind>[A-Za-z][\w-]*)[^\]]*\][+-]?(?P<title>.*)")

_ATTRIBUTE = r"(?:[#.][\w:-]+|[\w:-]+=(?:\"[^\"\n]*\"|'[^'\n]*'))"
_ATTRIBUTES = (
    rf"(?:\A|(?<=\s)(?=[^\n}}]*\}}[ \t]*$))\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]+{_ATTRIBUTE})*[ \t]*\}}"
)
MARKS = (  # in running text: a sign of each, the mark, what is shown of it
    ("{", re.compile(_ATTRIBUTES, re.MULTILINE), ""),
    ("==", re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]*[^\s=])==(?![=\w])"), r"\1"),  # highlighted
    ("~", re.compile(r"(?<=[A-Za-z)])~(\d{1,4})~"), r"\1"),  # a subscript: H~2~O
    ("^", re.compile(r"(?<=[\w)])\^([+-]?\w{1,4})\^"), r"^\1"),  # a superscript: 10^6^
    ("^[", re.compile(r"[ \t]*\^\[([^\[\]]*)\]"), r" (\1)"),  # a footnote where it belongs
    ("^", re.compile(r"(?:^|[ \t]+)\^[A-Za-z0-9-]{4,}[ \t]*$", re.MULTILINE), ""),  # the name of a block
)

_ADDED = re.compile(
    r"\[\[(?=[^\[\]\n\"'=$<>*?]+\]\](?![(\[:]))|%%(?=[^\n]*%%|[^%\n]*\n)"
    r"|\\\((?<!\w\\\()(?=[^\n]{1,200}?\\\))|\\\[(?![\w -]{1,80}\\\])(?=[ \t]*\n|[^\n]{1,200}?\\\])"
    r"|</[A-Z][\w.]+\s*>|<[A-Z][\w.]+(?:\s[^<>]*)?/>"
)
_WIKI_LINK = re.compile(
    rb"(?<![\w\]\\])(!?)\[\[([^\[\]|#\n]*)(#[^\[\]|\n]*)?(?:\\?\|([^\[\]\n]*))?\]\](?![(\[:])"
)
_NO_NOTE = re.compile(rb"[\"'$=<>*?]|\s+[-!]|[\s\d,.]*\Z")  # what a shell's test, an array or a citation begins with
_MEDIA = (b".png", b".jpg", b".jpeg", b".gif", b".svg", b".webp", b".avif", b".bmp", b".mp3", b".mp4", b".webm", b".wav")
_SIZE = re.compile(rb"\d+(?:x\d+)?")
_MARKUP = re.compile(rb"([\\*_`~$<&])")
_COMMENT = re.compile(rb"(?<!\S)%%(?!%)"), re.compile(rb"(?<!%)%%(?!\S)")
_MDX_COMMENT = re.compile(rb"\{/\*"), re.compile(rb"\*/\}")
_FORMULAS = (
    (re.compile(rb"(?<![\w\\])\\{1,2}\("), re.compile(rb"\\{1,2}\)"), b"$"),
    (re.compile(rb"(?<![\w\\])\\{1,2}\["), re.compile(rb"\\{1,2}\]"), b"$$"),
)
_FORMULA = re.compile(rb"(?!.*(?:\$|\n[ \t]*\n))(?:.*[\\^_={}+*/<>]|\s*\w\s*\Z)", re.DOTALL)
_MODULE = re.compile(rb"(?:import|export)\s+[\w{*'\"]")
_COMPONENT = re.compile(
    rb"<(/?)([A-Z][\w.]+)((?:\s+[\w:-]+(?:=(?:\"[^\"]*\"|'[^']*'|\{(?:[^{}]|\{[^{}]*\})*\}))?|\s+\{\.\.\.[^{}]*\})*)\s*(/?)>"
)
_CLOSED = re.compile(rb"</([A-Z][\w.]+)\s*>")
_READABLE = re.compile(rb"\b(?:title|label|header|summary|caption|alt|description|text)=(?:\"([^\"]*)\"|'([^']*)')")
_VOID = (b"br", b"hr", b"img", b"input", b"link", b"meta")


def plain_markdown(text: str, *, is_mdx: bool) -> str:
    """The text with what is not CommonMark rewritten; itself where there is nothing."""
    if _CONTAINERS.search(f"\n{text}"):
        text = "\n".join(_without_containers(text.split("\n")))
    if not is_mdx and not _ADDED.search(text):
        return text
    source = text.encode()
    reader = _Source(text, source, is_mdx=is_mdx)
    return edited(source, reader.edits())


def edited(source: bytes, edits: list[_Edit]) -> str:
    """The source with each (start, end, replacement), the first of those that overlap."""
    pieces: list[bytes] = []
    at = 0
    for start, end, replacement in sorted(edits):
        if start >= at:
            pieces += (source[at:start], replacement)
            at = end
    return b"".join((*pieces, source[at:])).decode()


def _without_containers(lines: list[str]) -> Iterator[str]:
    """The lines, with a title for what begins a container, whose content moves out to where the title stands."""
    margins: list[int] = []
    fence = ""
    for line in lines:
        bare = line.lstrip(" ")
        indentation = len(line) - len(bare)
        if bare:
            while margins and indentation < margins[-1]:
                margins.pop()
                fence = ""
        line = line[min(indentation, 4 * len(margins)) :]
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line[mark.end() :].strip() else fence
        elif mark:
            fence = mark[1]
        elif match := _INDENTED.fullmatch(line):
            margins.append(indentation + 4)
            line = f"\n{match[1]}{_container_title(match['kind'], match['title'])}\n"
        elif match := _FENCED.fullmatch(line):
            title = _container_title(match["kind"], match["bracketed"] or match["title"])
            line = f"{match[1]}\n{match[1]}{title}\n{match[1]}"
        elif match := _CALLOUT.fullmatch(line):
            line = f"{match[1]} {_container_title(match['kind'], match['title'])}\n{match[1]}"
        yield line


def _container_title(kind: str | None, title: str | None) -> str:
    """`Tip: Title`, or what there is of it."""
    named = (kind or "").capitalize()
    title = (title or "").strip()
    return f"{named}: {title}" if named and title else named or title


class _Source:
    """A document's bytes, and where code and formulas stand in them."""

    def __init__(self, text: str, source: bytes, *, is_mdx: bool) -> None:
        self._source = source
        self._is_mdx = is_mdx
        self._modules: list[_Edit] = []
        self._code: list[tuple[int, int]] = []
        self._html: list[tuple[int, int]] = []
        self._labels = {label.encode() for label in pyromark.reference_definitions(text, options=OPTIONS)}
        for event, place in pyromark.events_with_range(text, options=OPTIONS):
            if not isinstance(event, dict):
                continue
            ((name, detail),) = event.items()
            start, end = place["start"], place["end"]
            if name == "Start":
                kind = detail if isinstance(detail, str) else next(iter(detail))
                if kind == "Paragraph" and is_mdx and source[start - 1 : start] in (b"", b"\n"):
                    if _MODULE.match(source, start):
                        self._modules.append((start, end, b"\n"))
                    continue
                if kind == "HtmlBlock":
                    self._html.append((start, end))
                if kind != "CodeBlock":
                    continue
            elif name not in ("Code", "InlineMath", "DisplayMath"):
                continue
            self._code.append((start, end))

    def edits(self) -> list[_Edit]:
        edits = list(self._modules)
        for begin, end in self._between(*_COMMENT):
            edits.append((begin, end, b""))
        if self._is_mdx:
            edits += [(begin, end, b"") for begin, end in self._between(*_MDX_COMMENT)]
        for opening, closing, mark in _FORMULAS:
            for begin, end in self._between(opening, closing):
                inner = self._source[begin:end].strip(b"\\")[1:-1].rstrip(b"\\").strip()
                if _FORMULA.match(inner):
                    edits.append((begin, end, mark + inner + mark))
        closed = {name for name in _CLOSED.findall(self._source)}
        edits += self._replaced(_WIKI_LINK, self._wiki_link)
        return edits + self._replaced(_COMPONENT, lambda match: self._component(match, closed))

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
            end = closing.search(self._source, at)
            if end is None:
                break
            yield begin.start(), end.end()
            at = end.end()

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
        if match[1] and name.lower().endswith(_MEDIA):
            return b"![%b](%b)" % (name if not alias or _SIZE.fullmatch(alias) else alias, quote(name).encode())
        heading = b"" if part.startswith(b"^") else part.replace(b"#", b" > ")
        shown = alias or _MARKUP.sub(rb"\\\1", b" > ".join(word for word in (name, heading) if word)) or part
        return b"[%b](%b)" % (shown, WIKI.encode() + quote(name).encode()) if name else shown

    def _component(self, match: re.Match[bytes], closed: set[bytes]) -> bytes | None:
        """The readable attributes; None for what is no component, such as the parameter of a generic type."""
        name = match[2]
        if name.lower() in _VOID or not (self._is_mdx or match[4] or name in closed) or name.isupper():
            return None
        shown = b" ".join(first or second for first, second in _READABLE.findall(match[3]))
        before = self._source.rfind(b"\n", 0, match.start()) + 1
        after = self._source.find(b"\n", match.end())
        line_end = self._source[match.end() : after if after >= 0 else None]
        stands_alone = not self._source[before : match.start()].strip() and not line_end.strip()
        return b"\n\n%b\n" % shown if stands_alone else b" %b " % shown if shown else b""
