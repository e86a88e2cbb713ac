"""reStructuredText, by docutils: nothing is fetched or included, and unknown markup keeps its text."""

import re
from collections.abc import Iterable, Iterator
from functools import cache, singledispatchmethod
from itertools import count, repeat

from docutils import nodes
from docutils.frontend import Values, get_default_settings
from docutils.utils import new_document

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.docutils_dialect import TolerantParser, apply_references
from indexer.parsing.front_matter import Fields, field_name, first_value, split_header_block
from indexer.parsing.text import write_linked

MAX_LINE_CHARACTERS = 5_000
MAX_SUBSTITUTIONS = 10_000

_ERROR_LEVEL = 3
_LONG_LINE = re.compile(rf"[^\n]{{{MAX_LINE_CHARACTERS + 1},}}")
_DIRECTIVE = re.compile(r"\A\s*\.\. [\w:+.-]+::[ \t]*([^\n]*)(?:\n[ \t]+:[\w-]+:[^\n]*)*")
_PIECE = re.compile(rf".{{1,{MAX_LINE_CHARACTERS}}}(?:\s|$)|.{{{MAX_LINE_CHARACTERS}}}")


def parse(text: str) -> ParsedDocument:
    """A header block, or a field list at the start or under the title, becomes fields and stays in the text.

    The title is that of a field, else the first heading of the first level.
    """
    header, body = split_header_block(text)
    # as a field list, so that docutils reads markup in the values
    whole = "".join(f":{name}: {value}\n" for name, value in header) + "\n" + body
    document = new_document("content", _settings().copy())
    if max(map(len, whole.split("\n"))) > MAX_LINE_CHARACTERS:
        whole = _LONG_LINE.sub(_wrapped, whole)
    TolerantParser().parse(whole, document)
    apply_references(document)
    writer = _Writer(DocumentBuilder(), document)
    writer.write_children(document)
    return writer.finish()


_SETTINGS = {
    "_disable_config": True,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
    "syntax_highlight": "none",
    "smart_quotes": False,
    "pep_references": False,
    "rfc_references": False,
    "line_length_limit": 1_000_000,
    "traceback": False,
}


@cache
def _settings() -> Values:
    """Cached: docutils takes milliseconds to collect the defaults of all components."""
    settings = get_default_settings(TolerantParser)
    for name, value in _SETTINGS.items():
        setattr(settings, name, value)
    return settings


def _wrapped(line: re.Match[str]) -> str:
    """A line too long for docutils' regular expressions, as several with the same indentation."""
    whole = line[0]
    indent = whole[: len(whole) - len(whole.lstrip())][:200]
    return ("\n" + indent).join(piece[0].strip() for piece in _PIECE.finditer(whole))


class _Writer:
    """Writes a document tree, dispatching on the class of each node."""

    def __init__(self, builder: DocumentBuilder, document: nodes.document) -> None:
        self._builder = builder
        self._substitutions = document.substitution_defs
        self._aliases = document.substitution_names
        self._substitutions_left = MAX_SUBSTITUTIONS
        self._bibliographic = _bibliographic_fields(document)
        self._level = 0
        self._open_substitutions: set[str] = set()
        self._fields: Fields = []
        self._first_heading: str | None = None

    def finish(self) -> ParsedDocument:
        return self._builder.finish(first_value(self._fields, "title") or self._first_heading, self._fields)

    def write_children(self, node: nodes.Element) -> None:
        for child in node.children:
            self.write(child)

    def write(self, node: nodes.Node) -> None:
        self._for_class(type(node))(self, node)  # access through the descriptor would make a wrapper each time

    @singledispatchmethod
    def _written(self, node: nodes.Node) -> None:
        """By default a node is a block with children."""
        if isinstance(node, nodes.Element):
            self._builder.break_block()
            self.write_children(node)
            self._builder.break_block()

    @_written.register
    def _(self, node: nodes.Text) -> None:
        self._builder.write(node.astext())

    @_written.register(nodes.Invisible)
    @_written.register(nodes.raw)
    @_written.register(nodes.meta)
    @_written.register(nodes.decoration)
    @_written.register(nodes.colspec)
    def _(self, node: nodes.Node) -> None:
        """Not visible."""

    @_written.register(nodes.Inline)
    @_written.register(nodes.target)
    @_written.register(nodes.line)
    @_written.register(nodes.tgroup)
    @_written.register(nodes.thead)
    @_written.register(nodes.tbody)
    def _(self, node: nodes.Element) -> None:
        self.write_children(node)

    @_written.register(nodes.emphasis)
    @_written.register(nodes.strong)
    @_written.register(nodes.title_reference)
    def _(self, node: nodes.Element) -> None:
        mark = self._builder.mark()
        self.write_children(node)
        self._builder.emphasise(mark)

    @_written.register(nodes.literal_block)
    @_written.register(nodes.doctest_block)
    @_written.register(nodes.math_block)
    def _(self, node: nodes.Element) -> None:
        self._builder.verbatim(node.astext())

    @_written.register(nodes.footnote_reference)
    @_written.register(nodes.citation_reference)
    def _(self, node: nodes.Element) -> None:
        self._builder.write(f"[{node.astext()}]")

    @_written.register
    def _(self, node: nodes.section) -> None:
        self._level += 1
        self.write_children(node)
        self._level -= 1

    @_written.register
    def _(self, node: nodes.image) -> None:
        mark = self._builder.mark()
        self._builder.write(str(node.get("alt", "")))
        self._builder.image(mark)

    @_written.register
    def _(self, node: nodes.bullet_list) -> None:
        self._list(node, repeat("-"))

    @_written.register
    def _(self, node: nodes.enumerated_list) -> None:
        self._list(node, (f"{number}." for number in count(int(node.get("start", 1)))))

    @_written.register
    def _(self, node: nodes.row) -> None:
        self._builder.row(_plain(entry) for entry in node.children)

    @_written.register
    def _(self, node: nodes.term) -> None:
        self._builder.break_block()
        mark = self._builder.mark()
        self.write_children(node)
        self._builder.emphasise(mark)
        self._builder.break_line()

    @_written.register
    def _(self, node: nodes.title) -> None:
        """A section's title is a heading; that of a topic, table or admonition a line."""
        builder = self._builder
        if not isinstance(node.parent, nodes.section):
            builder.break_block()
            self.write_children(node)
            builder.break_line()
            return
        builder.begin_heading()
        self.write_children(node)
        title = builder.end_heading(self._level)
        if self._level == 1 and self._first_heading is None:
            self._first_heading = title or None

    def _list(self, node: nodes.Element, markers: Iterable[str]) -> None:
        builder = self._builder
        builder.break_block()
        for marker, item in zip(markers, node.children, strict=False):
            builder.begin_item(marker)
            if isinstance(item, nodes.Element):
                self.write_children(item)
            builder.end_item()
        builder.break_block()

    @_written.register(nodes.field_list)
    @_written.register(nodes.option_list)
    def _(self, node: nodes.Element) -> None:
        """A line for each non-empty field; fields before all text, or right under the title, are the document's."""
        builder = self._builder
        at_the_start = builder.mark() == 0 and not isinstance(node, nodes.option_list)
        is_metadata = at_the_start or node is self._bibliographic
        colon = "" if isinstance(node, nodes.option_list) else ":"
        builder.break_block()
        for name, body in (item.children for item in node.children if len(item.children) == 2):
            value = " ".join(_plain(body).split())
            if not value or not isinstance(body, nodes.Element):
                continue
            builder.break_line()
            builder.write(f"{_plain(name)}{colon} ")
            self._on_its_line(body)
            if is_metadata:
                self._fields.append((field_name(_plain(name)), value))
        builder.break_block()

    @_written.register(nodes.definition)
    def _on_its_line(self, body: nodes.Element) -> None:
        """Write a body whose first paragraph continues the current line."""
        for number, child in enumerate(body.children):
            if number == 0 and isinstance(child, nodes.paragraph):
                self.write_children(child)
                self._builder.break_line()
            else:
                self.write(child)

    @_written.register
    def _(self, node: nodes.line_block) -> None:
        self._builder.break_block()
        for line in node.children:
            self.write(line)
            self._builder.break_line()
        self._builder.break_block()

    @_written.register(nodes.footnote)
    @_written.register(nodes.citation)
    def _(self, node: nodes.Element) -> None:
        self._builder.break_block()
        label, *rest = node.children
        self._builder.write(f"[{label.astext()}] ")
        body = nodes.container()
        body.children = rest
        self._on_its_line(body)
        self._builder.break_block()

    @_written.register
    def _(self, node: nodes.figure) -> None:
        builder = self._builder
        builder.break_block()
        mark = builder.mark()
        captions = [child for child in node.children if isinstance(child, nodes.caption)]
        for child in node.children:
            for image in child.findall(nodes.image) if not isinstance(child, nodes.caption) else ():
                builder.write(str(image.get("alt", "")))
            if not isinstance(child, nodes.image | nodes.reference):
                self.write(child)
        builder.image(mark, _plain(captions[0]) if captions else "")
        builder.break_block()

    @_written.register
    def _(self, node: nodes.reference) -> None:
        mark = self._builder.mark()
        written = str(node.get("refuri", ""))
        if written and node.astext() == written:
            write_linked(self._builder, written)
            return
        self.write_children(node)
        self._builder.link(written, mark)

    @_written.register
    def _(self, node: nodes.substitution_reference) -> None:
        """Expand a substitution; an unknown or circular one, or one over the limit, keeps its name."""
        name = str(node.get("refname", node.astext()))
        name = name if name in self._substitutions else self._aliases.get(name.lower(), name)
        definition = self._substitutions.get(name)
        self._substitutions_left -= 1
        if definition is None or name in self._open_substitutions or self._substitutions_left < 0:
            self._builder.write(node.astext())
            return
        self._open_substitutions.add(name)
        self.write_children(definition)
        self._open_substitutions.discard(name)

    @_written.register
    def _(self, message: nodes.system_message) -> None:
        """Keep the text of rejected source, without the message."""
        if int(message.get("level", 0)) >= _ERROR_LEVEL:
            for source in message.findall(nodes.literal_block):
                self._builder.verbatim(_DIRECTIVE.sub(r"\1", source.astext()))

    _for_class = staticmethod(_written.dispatcher.dispatch)


def _bibliographic_fields(document: nodes.document) -> nodes.field_list | None:
    """The field list that docutils treats as the document's: its first element, or the first under title and subtitle.

    A title is that of a section without siblings (docutils.transforms.frontmatter: DocTitle, DocInfo).
    """
    node: nodes.Element = document
    for _ in ("document", "title", "subtitle"):
        first = next((child for child in node.children if not isinstance(child, nodes.PreBibliographic)), None)
        if isinstance(first, nodes.field_list):
            return first
        if not isinstance(first, nodes.section) or first is not node.children[-1]:
            return None
        node = first
    return None


def _plain(node: nodes.Node) -> str:
    return " ".join(_texts(node))


def _texts(node: nodes.Node) -> Iterator[str]:
    """The text of each block in a node."""
    blocks = [child for child in node.children if not isinstance(child, nodes.Text | nodes.Inline)]
    if not blocks or isinstance(node, nodes.TextElement):
        yield node.astext()
        return
    for child in node.children:
        yield from _texts(child)
