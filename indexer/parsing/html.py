"""HTML, by selectolax (lexbor): what a reader of the page reads, without scripts, styles and navigation."""

import re
from collections.abc import Callable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import TextAssembler
from indexer.parsing.header_blocks import Fields, field_name
from indexer.parsing.html_depth import limit_nesting, tag_names
from indexer.parsing.text import write_linked, write_plain

_LEFT_OUT = tag_names(
    "script style noscript template svg nav head iframe object embed canvas button select input textarea dialog"
)
_BOILERPLATE_ROLES = tag_names("navigation search contentinfo menu menubar")
_BLOCKS = tag_names(
    "address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure "
    "footer form header hgroup hr html legend main menu ol optgroup p section summary table tbody tfoot thead "
    "ul"
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SET_OFF = tag_names("b strong em i dfn")
_META = re.compile(r"author|description|keywords|date|subject|publisher|(dc|dcterms|citation)[._].+", re.IGNORECASE)
_TITLE_CHARACTERS = 500
_MARKUP = re.compile(
    r"</(?:p|div|a|b|i|em|strong|span|h[1-6]|li|ul|ol|td|pre|code|blockquote)\s*>|<br\s*/?>", re.IGNORECASE
)


def parse(text: str) -> ParsedDocument:
    """The title is that of the page, else its first `h1`; `meta` elements that describe it become fields."""
    tree = LexborHTMLParser(limit_nesting(text))
    assembler = TextAssembler()
    walk = _Walk(assembler)
    if tree.root is not None:
        walk.read(tree.root)
    element = tree.css_first("head title") or tree.css_first("title")
    title = " ".join((element.text() if element else "").split())[:_TITLE_CHARACTERS]
    return assembler.finish(title or walk.first_heading, _meta_fields(tree))


def write_fragment(assembler: TextAssembler, markup: str) -> None:
    """Write a piece of HTML that stands inside another format."""
    tree = LexborHTMLParser(limit_nesting(markup))
    if tree.body is not None:
        _Walk(assembler).read(tree.body)


def write_text_or_markup(assembler: TextAssembler, text: str) -> None:
    """Write the text of another format's field: as a piece of HTML when it is set in HTML, else as plain text."""
    if _MARKUP.search(text):
        write_fragment(assembler, text)
    else:
        write_plain(assembler, text)


def _meta_fields(tree: LexborHTMLParser) -> Fields:
    described = ((node.attributes.get("name"), node.attributes.get("content")) for node in tree.css("meta[name]"))
    return [
        (field_name(name), " ".join(content.split()))
        for name, content in described
        if name and content and content.strip() and _META.fullmatch(name)
    ]


class _Walk:
    """One walk over a tree, in document order, without recursion. An element's end runs the action its start left."""

    def __init__(self, assembler: TextAssembler) -> None:
        self._assembler = assembler
        self._numbering: list[int | None] = []
        self._cells = 0
        self._captioned = 0
        self.first_heading: str | None = None

    def read(self, root: LexborNode) -> None:
        ends: list[Callable[[], object] | None] = []
        node: LexborNode | None = root
        while node is not None:
            descend = self._start(node, ends)
            child = node.child if descend else None
            if child is not None:
                node = child
                continue
            self._end(ends)
            while node is not None and len(ends) > 0 and node.next is None:
                node = node.parent
                self._end(ends)
            node = node.next if ends and node is not None else None

    @staticmethod
    def _end(ends: list[Callable[[], object] | None]) -> None:
        action = ends.pop()
        if action is not None:
            action()

    def _start(self, node: LexborNode, ends: list[Callable[[], object] | None]) -> bool:
        """Write what stands at a node's start, put what is to be done at its end on `ends`; False to pass it over."""
        tag = node.tag or ""
        if tag == "-text":
            self._text(node.text_content or "")
            ends.append(None)
            return False
        if tag.startswith(("_", "!")) or tag == "-comment" or self._is_left_out(node, tag):
            ends.append(None)
            return False
        ends.append(self._element(node, tag))
        return tag != "pre"

    def _text(self, text: str) -> None:
        write_linked(self._assembler, text)

    def _is_left_out(self, node: LexborNode, tag: str) -> bool:
        if tag in _LEFT_OUT:
            return True
        if tag == "footer" and node.parent is not None and node.parent.tag == "body":
            return True
        attributes = node.attributes
        if not attributes:
            return False
        return "hidden" in attributes or (attributes.get("role") or "").lower() in _BOILERPLATE_ROLES

    def _element(self, node: LexborNode, tag: str) -> Callable[[], object] | None:
        assembler = self._assembler
        if tag in _HEADINGS:
            assembler.begin_heading()
            return lambda: self._end_heading(_HEADINGS[tag])
        if tag == "a" or tag in _SET_OFF:
            return self._span(node, tag)
        if tag == "figure":
            return self._figure(node)
        if tag in ("img", "pre"):
            (self._image if tag == "img" else self._preformatted)(node)
            return None
        return self._layout(node, tag)

    def _span(self, node: LexborNode, tag: str) -> Callable[[], object]:
        assembler, mark = self._assembler, self._assembler.mark()
        if tag == "a":
            target = (node.attributes.get("href") or "").strip()
            return lambda: assembler.link(target, mark)
        return lambda: assembler.emphasise(mark)

    def _layout(self, node: LexborNode, tag: str) -> Callable[[], object] | None:
        assembler = self._assembler
        if tag == "br":
            assembler.break_line()
        elif tag == "li":
            assembler.begin_item(self._marker())
            return assembler.end_item
        elif tag == "tr":
            self._cells = 0
            assembler.break_line()
            return assembler.break_line
        elif tag in ("td", "th"):
            if self._cells:
                assembler.write(" | ")
            self._cells += 1
        elif tag in _BLOCKS:
            assembler.break_block()
            if tag in ("ul", "ol", "menu"):
                self._numbering.append(_first_number(node) if tag == "ol" else None)
                return self._end_list
            return assembler.break_block
        return None

    def _end_heading(self, level: int) -> None:
        title = self._assembler.end_heading(level)
        if level == 1 and self.first_heading is None:
            self.first_heading = title or None

    def _end_list(self) -> None:
        self._numbering.pop()
        self._assembler.break_block()

    def _marker(self) -> str:
        number = self._numbering[-1] if self._numbering else None
        if number is None:
            return "-"
        self._numbering[-1] = number + 1
        return f"{number}."

    def _image(self, node: LexborNode) -> None:
        mark = self._assembler.mark()
        self._assembler.write(node.attributes.get("alt") or "")
        if not self._captioned:
            self._assembler.image(mark)

    def _figure(self, node: LexborNode) -> Callable[[], object]:
        """A figure with a caption is one figure, whatever images it holds."""
        assembler = self._assembler
        assembler.break_block()
        mark = assembler.mark()
        caption = node.css_first("figcaption")
        words = caption.text() if caption else ""
        if not words.strip():
            return assembler.break_block
        self._captioned += 1

        def end() -> None:
            self._captioned -= 1
            assembler.image(mark, words)
            assembler.break_block()

        return end

    def _preformatted(self, node: LexborNode) -> None:
        """Code keeps its lines; old pages set running text this way, which is read as plain text."""
        content = node.text(deep=True)
        if node.css_first("code, span, samp, kbd"):
            self._assembler.verbatim(content)
        else:
            self._assembler.break_block()
            write_plain(self._assembler, content)
            self._assembler.break_block()


def _first_number(node: LexborNode) -> int:
    start = (node.attributes.get("start") or "").strip()
    return int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1
