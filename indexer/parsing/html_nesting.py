"""The depth of HTML, limited before it is parsed."""

import re
from collections.abc import Iterator

from indexer.parsing.registry import MAX_HTML_DEPTH

MAX_OPEN_FORMATTING = 16


def tag_names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)[^<>]*>?|<!--")
_VOID = tag_names("area base br col embed hr img input link meta param source track wbr")
_CLOSED_BY_THE_NEXT = tag_names("p li dt dd tr td th thead tbody tfoot option html head body")
_FORMATTING = tag_names("a b big code em font i nobr s small strike strong tt u")
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}
_FOREIGN = tag_names("svg math")
_BARRIERS = tag_names("table template object marquee applet svg math button select")


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
