"""HTML, by selectolax (lexbor): the visible text of a page, without scripts, styles and navigation."""

import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.front_matter import Fields, field_name
from indexer.parsing.registry import MAX_HTML_DEPTH
from indexer.parsing.text import write_linked, write_plain

MAX_OPEN_FORMATTING = 16


def tag_names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SKIPPED = tag_names(
    "script style noscript template svg nav head iframe object embed canvas button select input textarea dialog"
)
_BOILERPLATE_ROLES = tag_names("navigation search contentinfo menu menubar")
_BLOCKS = tag_names(
    "address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure "
    "footer form header hgroup hr html legend main menu ol optgroup p section summary table tbody tfoot thead "
    "ul"
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_EMPHASIS = tag_names("b strong em i dfn")
_META = re.compile(r"author|description|keywords|date|subject|publisher|(dc|dcterms|citation)[._].+", re.IGNORECASE)
_TITLE_CHARACTERS = 500
_MARKUP = re.compile(
    r"</(?:p|div|a|b|i|em|strong|span|h[1-6]|li|ul|ol|td|pre|code|blockquote)\s*>|<br\s*/?>", re.IGNORECASE
)

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)[^<>]*>?|<!--")
_VOID = tag_names("area base br col embed hr img input link meta param source track wbr")
_CLOSED_BY_THE_NEXT = tag_names("p li dt dd tr td th thead tbody tfoot option html head body")
_FORMATTING = tag_names("a b big code em font i nobr s small strike strong tt u")
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}
_FOREIGN = tag_names("svg math")
_BARRIERS = tag_names("table template object marquee applet svg math button select")


def parse(text: str) -> ParsedDocument:
    """The title is that of the page, else its first `h1`; descriptive `meta` elements become fields."""
    tree = LexborHTMLParser(limit_nesting(text))
    builder = DocumentBuilder()
    walk = _Walk(builder)
    if tree.root is not None:
        walk.read(tree.root)
    element = tree.css_first("head title") or tree.css_first("title")
    title = " ".join((element.text() if element else "").split())[:_TITLE_CHARACTERS]
    return builder.finish(title or walk.first_heading, _meta_fields(tree))


def write_fragment(builder: DocumentBuilder, markup: str) -> None:
    """Write HTML embedded in another format."""
    tree = LexborHTMLParser(limit_nesting(markup))
    if tree.body is not None:
        _Walk(builder).read(tree.body)


def write_text_or_markup(builder: DocumentBuilder, text: str) -> None:
    """Write a text that may be HTML or plain text, distinguished by its markup."""
    if _MARKUP.search(text):
        write_fragment(builder, text)
    else:
        write_plain(builder, text)


def _meta_fields(tree: LexborHTMLParser) -> Fields:
    described = ((node.attributes.get("name"), node.attributes.get("content")) for node in tree.css("meta[name]"))
    return [
        (field_name(name), " ".join(content.split()))
        for name, content in described
        if name and content and content.strip() and _META.fullmatch(name)
    ]


class _Walk:
    """Walks a tree in document order without recursion. The start of an element may leave an action for its end."""

    def __init__(self, builder: DocumentBuilder) -> None:
        self._builder = builder
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
        """Handle a node's start and push the action for its end; False to skip its children."""
        tag = node.tag or ""
        if tag == "-text":
            write_linked(self._builder, node.text_content or "")
            ends.append(None)
            return False
        if tag.startswith(("_", "!")) or tag == "-comment" or self._is_skipped(node, tag):
            ends.append(None)
            return False
        ends.append(self._element(node, tag))
        return tag != "pre"

    def _is_skipped(self, node: LexborNode, tag: str) -> bool:
        if tag in _SKIPPED:
            return True
        if tag == "footer" and node.parent is not None and node.parent.tag == "body":
            return True
        attributes = node.attributes
        if not attributes:
            return False
        return "hidden" in attributes or (attributes.get("role") or "").lower() in _BOILERPLATE_ROLES

    def _element(self, node: LexborNode, tag: str) -> Callable[[], object] | None:
        builder = self._builder
        if tag in _HEADINGS:
            builder.begin_heading()
            return lambda: self._end_heading(_HEADINGS[tag])
        if tag == "a" or tag in _EMPHASIS:
            return self._span(node, tag)
        if tag == "figure":
            return self._figure(node)
        if tag in ("img", "pre"):
            (self._image if tag == "img" else self._preformatted)(node)
            return None
        return self._layout(node, tag)

    def _span(self, node: LexborNode, tag: str) -> Callable[[], object]:
        builder = self._builder
        if tag == "a" and node.prev is not None and node.prev.tag == "a":
            builder.write(" ")  # links side by side are drawn apart
        mark = builder.mark()
        if tag == "a":
            target = (node.attributes.get("href") or "").strip()
            return lambda: builder.link(target, mark)
        return lambda: builder.emphasise(mark)

    def _layout(self, node: LexborNode, tag: str) -> Callable[[], object] | None:
        builder = self._builder
        if tag == "br":
            builder.break_line()
        elif tag == "li":
            builder.begin_item(self._marker())
            return builder.end_item
        elif tag == "tr":
            self._cells = 0
            builder.break_line()
            return builder.break_line
        elif tag in ("td", "th"):
            if self._cells:
                builder.write(" | ")
            self._cells += 1
        elif tag in _BLOCKS:
            builder.break_block()
            if tag in ("ul", "ol", "menu"):
                self._numbering.append(_first_number(node) if tag == "ol" else None)
                return self._end_list
            return builder.break_block
        return None

    def _end_heading(self, level: int) -> None:
        title = self._builder.end_heading(level)
        if level == 1 and self.first_heading is None:
            self.first_heading = title or None

    def _end_list(self) -> None:
        self._numbering.pop()
        self._builder.break_block()

    def _marker(self) -> str:
        number = self._numbering[-1] if self._numbering else None
        if number is None:
            return "-"
        self._numbering[-1] = number + 1
        return f"{number}."

    def _image(self, node: LexborNode) -> None:
        mark = self._builder.mark()
        self._builder.write(node.attributes.get("alt") or "")
        if not self._captioned:
            self._builder.image(mark)

    def _figure(self, node: LexborNode) -> Callable[[], object]:
        """A figure with a caption counts as one, whatever images it contains."""
        builder = self._builder
        builder.break_block()
        mark = builder.mark()
        caption = node.css_first("figcaption")
        words = caption.text() if caption else ""
        if not words.strip():
            return builder.break_block
        self._captioned += 1

        def end() -> None:
            self._captioned -= 1
            builder.image(mark, words)
            builder.break_block()

        return end

    def _preformatted(self, node: LexborNode) -> None:
        """Code keeps its lines; running text, which old pages set this way, is read as plain text."""
        content = node.text(deep=True)
        if node.css_first("code, span, samp, kbd"):
            self._builder.verbatim(content)
        else:
            self._builder.break_block()
            write_plain(self._builder, content)
            self._builder.break_block()


def _first_number(node: LexborNode) -> int:
    start = (node.attributes.get("start") or "").strip()
    return int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1


def limit_nesting(markup: str) -> str:
    """Drop start tags that would nest deeper than MAX_HTML_DEPTH elements or MAX_OPEN_FORMATTING formatting elements.

    lexbor takes quadratic time over 100,000 open elements, and reopens unclosed formatting in every further paragraph.
    A conservative count in one pass; no text is lost.
    """
    kept: list[str] = []
    at = 0
    for start, end in _surplus_tags(markup):
        kept += (markup[at:start], " ")
        at = end
    if not kept:
        return markup
    kept.append(markup[at:])
    return "".join(kept)


def _surplus_tags(markup: str) -> Iterator[tuple[int, int]]:
    opened: list[str] = []
    formats = 0
    at = 0
    while (match := _TAG.search(markup, at)) is not None:
        at = match.end()
        if match[2] is None:
            closed = markup.find("-->", at)
            at = len(markup) if closed < 0 else closed + 3
            continue
        name = match[2].lower()
        if name in _VOID or name in _CLOSED_BY_THE_NEXT:
            continue
        if match[1]:
            formats -= _close(opened, name)
            continue
        if name in _RAW and not _FOREIGN.intersection(opened):
            end = _RAW[name].search(markup, at)
            at = end.end() if end else len(markup)
            continue
        is_format = name in _FORMATTING
        if len(opened) >= MAX_HTML_DEPTH or (is_format and formats >= MAX_OPEN_FORMATTING):
            yield match.span()
            continue
        opened.append(name)
        formats += is_format


def _close(opened: list[str], name: str) -> int:
    """Close the innermost element of this name and all inside it, up to a barrier; the formatting elements closed."""
    for index in range(len(opened) - 1, -1, -1):
        if opened[index] == name:
            closed = sum(1 for inner in opened[index:] if inner in _FORMATTING)
            del opened[index:]
            return closed
        if opened[index] in _BARRIERS:
            break
    return 0
