"""LaTeX: its sections and listings are found here, the text between them is read by pylatexenc: accents and formulas as
characters. The preamble is left out, but for title, author and date; files that it includes are not read."""

import re
from typing import Any

from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.text import write_plain

_LEVELS = {name: level for level, name in enumerate(("part", "chapter", "section", "subsection", "subsubsection"), 1)}
_BRACES = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
_PART = re.compile(
    rf"\\(?P<level>{'|'.join(_LEVELS)})\*?[ \t]*(?:\[[^\]]*\])?[ \t]*{_BRACES}"
    r"|\\begin\{(?P<listing>verbatim\*?|lstlisting|minted|Verbatim|alltt)\}(?:\[[^\]\n]*\])?(?:\{[^}\n]*\})?"
    r"(?P<code>.*?)\\end\{(?P=listing)\}",
    re.DOTALL,
)
_OF_PREAMBLE = {name: re.compile(rf"\\{name}(?:\[[^\]]*\])?\s*{_BRACES}") for name in ("title", "author", "date")}
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)
_SHOWN = "caption footnote texttt url paragraph subparagraph"  # by their last argument
_LEFT_OUT = (
    "maketitle title author date cite citep citet ref eqref autoref cref pageref label includegraphics "
    "bibliographystyle bibliography tableofcontents"
)
_COMMENT = re.compile(r"(?<!\\)%.*")
_LINK = re.compile(r"\\href\s*\{([^{}]*)\}\s*" + _BRACES)
_INCLUDED = re.compile(r"\\(?:input|include|subfile)\s*\{([^}]*)\}")


def _last_argument(node: Any, l2tobj: Any) -> str:
    """What is shown of a macro; nothing where it is not there. pylatexenc passes the converter by this name."""
    given = [each for each in (node.nodeargd.argnlist or ()) if each is not None] if node.nodeargd else []
    return f" {l2tobj.nodelist_to_text([given[-1]])} " if given else ""


def _converter() -> LatexNodes2Text:
    context = get_default_latex_context_db()
    macros = [MacroTextSpec(name, simplify_repl=_last_argument) for name in _SHOWN.split()]
    macros += [MacroTextSpec(name, simplify_repl="") for name in _LEFT_OUT.split()]
    context.add_context_category("shown", macros=macros, prepend=True)
    return LatexNodes2Text(latex_context=context, keep_comments=False)


def parse(text: str) -> ParsedDocument:
    """The title is that of `\\title`, else of the first section."""
    body = _BODY.search(text)
    preamble = text[: body.start()] if body else text
    reader = _Reader()
    fields = {
        name: reader.plain(found[1]) for name, pattern in _OF_PREAMBLE.items() if (found := pattern.search(preamble))
    }
    reader.builder.field_lines((name, value) for name, value in fields.items() if name != "title")
    reader.read(body[1] if body else text)
    return reader.builder.finish(fields.get("title", reader.first_heading), fields.items(), reader.notes)


class _Reader:
    def __init__(self) -> None:
        self.builder = DocumentBuilder()
        self.notes: dict[str, None] = {}
        self.first_heading: str | None = None
        self._converter = _converter()

    def read(self, body: str) -> None:
        at = 0
        for part in _PART.finditer(body):
            write_plain(self.builder, self.converted(body[at : part.start()]))
            at = part.end()
            if part["level"]:
                heading = self.plain(part[2])
                self.first_heading = self.first_heading or heading
                self.builder.heading(_LEVELS[part["level"]], heading)
            else:
                self.builder.verbatim(part["code"])
        write_plain(self.builder, self.converted(body[at:]))

    def plain(self, text: str) -> str:
        """On one line."""
        return " ".join(self.converted(text).split())

    def converted(self, text: str) -> str:
        """Text as it is, without comments, where pylatexenc cannot read it."""
        for name in _INCLUDED.findall(_COMMENT.sub("", text)):
            self.notes[f"The file {name[:80]!r}, which it includes, was not read: load it too."] = None
        try:
            return str(self._converter.latex_to_text(_LINK.sub(r"\2 \\url{\1}", text)))
        except (RecursionError, IndexError, ValueError, AttributeError, TypeError, KeyError):
            self.notes["A part of it is not LaTeX that can be read, and stays as it is written."] = None
            return _COMMENT.sub("", text)
