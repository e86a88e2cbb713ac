"""HTML, by selectolax (lexbor): the visible text of a page, without scripts, styles and navigation.

What a page hides is not read, except what is shown later: tabs, results of a search within the page, and whatever has
a heading of its own or the main text in it. Nor are the marks of links to headings, the numbers of lines of code and
the readings above East Asian characters. A page that has no text but navigation and footer consists of these.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

from indexer.documents import ParsedDocument
from indexer.parsing import confluence
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.front_matter import Fields, field_name
from indexer.parsing.html_nesting import limit_nesting, tag_names
from indexer.parsing.superscripts import script_marks
from indexer.parsing.text import write_linked, write_plain

_SKIPPED = tag_names(
    "script style noscript template svg head iframe object embed canvas button select input textarea dialog rt rp rtc "
    "annotation annotation-xml"
)
_SECTIONING = tag_names("article aside blockquote details figure main section td")  # whose footer is content
_HIDDEN = re.compile(r"(?:\A|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))", re.IGNORECASE)
_MAIN = "main, article, h1"
_DECORATION = re.compile(
    r"\b(?:mw-editsection|editsection|mw-jump-link|katex-html|MathJax_Preview)\b"
    r"|\bcookie[\w-]*(?:banner|consent|notice|bar|popup|modal|overlay)|\bonetrust-|\bCybotCookie"
)
_LINE_NUMBERS = re.compile(r"\b(?:line-?n|ln\b|lnt|gutter|blob-num|hljs-ln-n)", re.IGNORECASE)
_ANCHOR = re.compile(r"anchor|permalink|header-?link|heading-?link|hash-?link", re.IGNORECASE)
_MARKS = re.compile(r"[\s¶§#↩↑🔗⚓^\u200b\ufe0e\ufe0f]*")
_NOTE = re.compile(r"reference|footnote|noteref", re.IGNORECASE)
_BETWEEN = {"mfrac": "/", "msup": "^", "msubsup": "^", "munderover": "^", "mover": "^"}  # before the last of them
_MATH = tag_names("mi mn mo mrow mtext mfrac msup msub msubsup msqrt mroot mfenced mstyle mover munderover mtd")
_BROKEN = "br, div, p, li, tr, button, [style], [hidden], [class*=line], [class*=ln], [class*=num], [class*=gutter]"
_START = "\0"  # of a line, unless one has just begun
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


def parse(text: str) -> ParsedDocument:
    """The title is that of the page, else its first `h1`; descriptive `meta` elements become fields."""
    tree = _tree(text)
    builder = DocumentBuilder()
    walk = _Walk(builder)
    if tree.root is not None:
        walk.read(tree.root)
        if not builder.mark():
            _Walk(builder, with_boilerplate=True).read(tree.root)
    element = tree.css_first("head title") or tree.css_first("title")
    title = " ".join((element.text() if element else "").split())[:_TITLE_CHARACTERS]
    return builder.finish(title or walk.first_heading, _meta_fields(tree))


def write_fragment(builder: DocumentBuilder, markup: str) -> None:
    """Write HTML embedded in another format."""
    tree = _tree(markup)
    if tree.body is not None:
        _Walk(builder).read(tree.body)


def _tree(markup: str) -> LexborHTMLParser:
    if "<![CDATA[" in markup:
        markup = confluence.with_cdata(markup)
    if "<ac:" in markup or "<ri:" in markup:
        markup = confluence.as_html(markup)
    return LexborHTMLParser(limit_nesting(markup))


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

    def __init__(self, builder: DocumentBuilder, *, with_boilerplate: bool = False) -> None:
        self._builder = builder
        self._with_boilerplate = with_boilerplate
        self._heading: LexborNode | None = None
        self._heading_length = -1
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
            text = node.text_content or ""
            if "://" in text:
                write_linked(self._builder, text)
            else:
                self._builder.write(text)
            ends.append(None)
            return False
        if tag.startswith(("_", "!")) or tag == "-comment" or self._is_skipped(node, tag):
            ends.append(None)
            return False
        ends.append(self._element(node, tag))
        return tag != "pre"

    def _is_skipped(self, node: LexborNode, tag: str) -> bool:
        if tag in _SKIPPED or (tag in ("nav", "footer") and self._is_boilerplate(node, tag)):
            return True
        attributes = node.attributes
        return bool(attributes) and self._is_left_out(node, tag, attributes)

    def _is_left_out(self, node: LexborNode, tag: str, attributes: dict[str, str | None]) -> bool:
        if ("hidden" in attributes or "style" in attributes) and _is_hidden(node, tag, attributes):
            return True
        if "role" in attributes and (attributes["role"] or "").lower() in _BOILERPLATE_ROLES:
            return not self._with_boilerplate
        if _is_decoration(attributes.get("class")) or _is_decoration(attributes.get("id")):
            return node.css_first(_MAIN) is None
        if tag == "a":
            return self._leads_to_itself(node, attributes)
        return tag == "td" and "class" in attributes and _numbers_lines(node, attributes["class"])

    def _is_boilerplate(self, node: LexborNode, tag: str) -> bool:
        return not self._with_boilerplate and (tag == "nav" or not _is_in_content(node))

    def _leads_to_itself(self, node: LexborNode, attributes: dict[str, str | None]) -> bool:
        """Whether a link is no text but the mark by which a heading or a note is linked to."""
        if "#" not in (attributes.get("href") or ""):
            return False
        text = node.text().strip()
        if self._heading is None or not _ANCHOR.search(f"{attributes.get('class')} {attributes.get('title')}"):
            return text != "" and _MARKS.fullmatch(text) is not None
        if self._heading_length < 0:
            self._heading_length = len(self._heading.text().strip())
        return len(text) < self._heading_length

    def _element(self, node: LexborNode, tag: str) -> Callable[[], object] | None:
        builder = self._builder
        if tag in _HEADINGS:
            builder.begin_heading()
            self._heading, self._heading_length = node, -1
            return lambda: self._end_heading(_HEADINGS[tag])
        if tag in ("sup", "sub"):
            return self._script(node, tag)
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
        elif (
            tag in _MATH
            and node.parent is not None
            and (node.parent.tag or "") in _BETWEEN
            and _is_last_of_several(node)
        ):
            builder.write(_BETWEEN[node.parent.tag or ""])
        return None

    def _script(self, node: LexborNode, tag: str) -> Callable[[], object] | None:
        around = node.parent
        is_note = (
            node.css_first('a[href*="#"]') is not None
            or (around is not None and around.tag == "a" and "#" in (around.attributes.get("href") or ""))
            or _NOTE.search(str(node.attributes)) is not None
        )
        after = (node.next.text() or "") if node.next is not None else ""
        before, behind = script_marks(
            self._builder.last_character(), node.text(), after, is_raised=tag == "sup", is_note=is_note
        )
        self._builder.write(before)
        return (lambda: self._builder.write(behind)) if behind else None

    def _end_heading(self, level: int) -> None:
        self._heading = None
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
        content = _lines_of(node)
        if node.css_first("code, span, samp, kbd"):
            self._builder.verbatim(content)
        else:
            self._builder.break_block()
            write_plain(self._builder, content)
            self._builder.break_block()


def _is_in_content(node: LexborNode) -> bool:
    """Whether a footer belongs to a part of the page, such as an article, rather than to the page."""
    around = node.parent
    while around is not None and around.tag not in _SECTIONING:
        around = around.parent
    return around is not None


def _is_hidden(node: LexborNode, tag: str, attributes: dict[str, str | None]) -> bool:
    if "hidden" not in attributes and not _HIDDEN.search(attributes.get("style") or ""):
        return False
    is_shown_later = attributes.get("role") == "tabpanel" or attributes.get("hidden") == "until-found"
    return not (is_shown_later or tag in ("html", "body") or node.css_first(_MAIN) is not None)


@lru_cache(maxsize=4096)
def _is_decoration(name: str | None) -> bool:
    """Whether a class or an id says so; pages have few of them, and each often."""
    return _DECORATION.search(name or "") is not None


def _numbers_lines(node: LexborNode, name: str | None) -> bool:
    """Whether a cell is the column of line numbers beside code."""
    if not _LINE_NUMBERS.search(name or "") or node.parent is None:
        return False
    return node.parent.css_first("pre, code, .code") is not None and _is_number(node)


def _is_number(node: LexborNode) -> bool:
    return "".join(node.text().split()).isdigit()


def _is_last_of_several(node: LexborNode) -> bool:
    following, before = node.next, node.prev
    while following is not None and following.tag == "-text":
        following = following.next
    while before is not None and before.tag == "-text":
        before = before.prev
    return following is None and before is not None


def _lines_of(node: LexborNode) -> str:
    """The text of preformatted content. Elements may end lines; numbers of lines and buttons are left out."""
    if node.css_first(_BROKEN) is None:
        return node.text(deep=True)
    pieces: list[str] = []
    _write_lines(node, pieces)
    return re.sub(f"\n?{_START}+", "\n", "".join(pieces))


def _write_lines(node: LexborNode, pieces: list[str]) -> None:
    child = node.child
    while child is not None:
        tag = child.tag or ""
        attributes = child.attributes if tag != "-text" else {}
        if tag == "-text":
            pieces.append(child.text_content or "")
        elif tag == "br":
            pieces.append("\n")
        elif tag in _BLOCKS or tag in ("li", "tr"):
            pieces.append(_START)
            _write_lines(child, pieces)
            pieces.append(_START)
        elif not (
            tag in _SKIPPED
            or tag == "-comment"
            or (attributes and _is_hidden(child, tag, attributes))
            or ("class" in attributes and _LINE_NUMBERS.search(attributes["class"] or "") and _is_number(child))
        ):
            _write_lines(child, pieces)
        child = child.next


def _first_number(node: LexborNode) -> int:
    start = (node.attributes.get("start") or "").strip()
    return int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1
