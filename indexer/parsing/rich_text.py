"""Rich text in JSON, as editors keep it, becomes HTML, so that a sentence is one text whatever is bold in it.

ProseMirror, TipTap and Atlassian's documents, Slate, Lexical, Quill, Portable Text, Contentful, Strapi, Notion, Slack,
Google Docs, Telegram's exports and unified's trees have one shape: text in leaves, leaves in arrays. An array that
holds a leaf is a line of text; all else in it is part of that line. Any other array holds blocks.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from indexer.parsing.html_nesting import tag_names

_CHILDREN = ("content", "children", "elements", "ops", "rich_text", "root", "paragraph", "document", "sectionBreak")
_KINDS = ("type", "_type", "nodeType", "object", "tag", "t")
_LEAVES = tag_names(
    "text span plain bold italic underline strikethrough code spoiler link textlink mention hashtag email phone date "
    "customemoji botcommand cashtag textmention inlinecode emphasis strong emoji status"
)
_BLOCKS = {
    "bulletlist": "ul", "unorderedlist": "ul", "ulist": "ul", "orderedlist": "ol", "listitem": "li", "taskitem": "li",
    "bulletedlistitem": "li", "numberedlistitem": "li", "todo": "li", "li": "li", "ul": "ul", "ol": "ol",
    "blockquote": "blockquote", "quote": "blockquote", "codeblock": "pre", "code": "pre", "preformatted": "pre",
    "richtextpreformatted": "pre", "table": "table", "tablerow": "tr", "tablecell": "td", "tableheader": "th",
}  # fmt: skip
_BREAKS = ("hardbreak", "linebreak", "break", "br", "softbreak")
_HEADING = re.compile(r"(?:heading|header|h)([1-6])?")
_LETTERS = re.compile(r"[^a-z0-9]")


class RichText:
    """Finds rich text in one document; what was looked at once is not looked at again."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], bool] = {}

    def as_html(self, value: object) -> str | None:
        """The HTML of rich text; None for other JSON."""
        if isinstance(value, dict) and "ops" in value:
            return _quill(value["ops"])
        return "".join(_blocks(value)) or None if self._is_rich(value) else None

    def _is_rich(self, value: object, *, is_bare: bool = False) -> bool:
        """Whether all of it is lines of text, and nodes that say what they are and hold such; `is_bare` for the
        children of a node, whose leaves need not say so."""
        known = self._known.get((id(value), is_bare))
        if known is None:
            known = self._known[id(value), is_bare] = self._looks_rich(value, is_bare=is_bare)
        return known

    def _looks_rich(self, value: object, *, is_bare: bool) -> bool:
        if isinstance(value, dict):
            inner = _inner(value)
            return inner is not None and _is_node(value) and self._is_rich(inner, is_bare="children" in value)
        if not isinstance(value, list) or all(isinstance(one, str) for one in value):
            return False
        if any(_is_leaf(one, is_bare=is_bare) for one in value):
            return all(_is_leaf(one, is_bare=is_bare) or _is_wordless(one) or self._is_rich(one) for one in value)
        return all(_is_node(one) for one in value) and any(map(self._is_rich, value))


def _is_leaf(node: Any, *, is_bare: bool) -> bool:
    return _text(node) is not None and (is_bare or isinstance(node, str) or _kind(node) != "" or "textRun" in node)


def _is_node(node: object) -> bool:
    """Whether a node is nothing but that: it has a kind or children, and no words beside them."""
    if not isinstance(node, dict) or not (_kind(node) or any(key in node for key in _CHILDREN)):
        return False
    return not any(isinstance(inner, str) and " " in inner for inner in node.values())


def _is_wordless(node: Any) -> bool:
    return _is_node(node) and not _inner(node) and _text_in(node) is None


def _kind(node: dict[str, Any]) -> str:
    name = next((node[key] for key in _KINDS if isinstance(node.get(key), str)), "")
    if name == "block" and isinstance(node.get("type"), str):
        name = node["type"]
    if name == "block" and isinstance(node.get("style"), str):
        name = node["style"]
    return _LETTERS.sub("", name.lower())


def _text(node: object) -> str | None:
    """The text of a leaf; None for another node."""
    if isinstance(node, str) or not isinstance(node, dict):
        return node if isinstance(node, str) else None
    if isinstance(node.get("plain_text"), str):
        return str(node["plain_text"])
    run = node.get("textRun")
    if isinstance(run, dict) and isinstance(run.get("content"), str):
        return str(run["content"])
    kind, text = _kind(node), _text_in(node)
    return text if kind in _LEAVES or (text is not None and not kind) else None


def _text_in(node: dict[str, Any]) -> str | None:
    attributes: Any = node.get("attrs") if isinstance(node.get("attrs"), dict) else {}
    found = (node.get("text"), node.get("value"), attributes.get("text"))
    return next((text for text in found if isinstance(text, str)), None)


def _inner(node: dict[str, Any]) -> list[Any] | dict[str, Any] | None:
    """The children of a node; those of a block of Notion's are in a field that is called as its type."""
    for key in (node.get("type"), *_CHILDREN):
        inner = node.get(key) if isinstance(key, str) else None
        if isinstance(inner, dict) and key in (node.get("type"), "paragraph"):
            return _inner(inner)
        if isinstance(inner, list | dict):
            return inner
    return None


def _is_line(nodes: list[Any]) -> bool:
    return any(_text(node) is not None for node in nodes)


def _blocks(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        if _is_line(value):
            yield f"<p>{''.join(map(_inline, value))}</p>"
        else:
            for one in value:
                yield from _blocks(one)
    elif isinstance(value, dict):
        inner, kind = _inner(value), _kind(value)
        element = _element(value, kind)
        if isinstance(inner, list) and _is_line(inner):
            line = "".join(map(_inline, inner))
            yield (
                f"<pre><code>{line}</code></pre>"
                if element == "pre"
                else f"<{element or 'p'}>{line}</{element or 'p'}>"
            )
        elif inner is not None:
            yield f"<{element or 'div'}>"
            yield from _blocks(inner)
            yield f"</{element or 'div'}>"
        elif (text := _text(value)) is not None:
            yield f"<p>{escape(text)}</p>"


def _element(node: dict[str, Any], kind: str) -> str | None:
    if heading := _HEADING.fullmatch(kind):
        attributes: Any = node.get("attrs") if isinstance(node.get("attrs"), dict) else node
        given = heading[1] or str(attributes.get("level") or node.get("depth") or node.get("tag") or "2")[-1]
        return f"h{given if given in '123456' else 2}"
    return _BLOCKS.get(kind)


def _inline(node: Any) -> str:
    text = _text(node)
    if text is None and isinstance(node, dict):
        if _kind(node) in _BREAKS:
            return "<br>"
        inner = _inner(node)
        text_of = "".join(map(_inline, inner)) if isinstance(inner, list) else _inline(inner) if inner else ""
    else:
        text_of = escape(text or "").replace("\n", "<br>")
    target = _target(node) if isinstance(node, dict) else None
    return f'<a href="{escape(target)}">{text_of or escape(target)}</a>' if target else text_of


def _target(node: dict[str, Any]) -> str | None:
    marks = node["marks"] if isinstance(node.get("marks"), list) else []
    marks = [mark for mark in marks if isinstance(mark, dict)]
    places = [node, *marks]
    for place in [*places, *(each.get(key) for each in places for key in ("attrs", "data", "fields"))]:
        if isinstance(place, dict):
            for key in ("href", "url", "uri"):
                if isinstance(place.get(key), str) and place[key]:
                    return str(place[key])
    return None


def _quill(operations: object) -> str | None:
    """Quill's delta: what ends a line says what the line is."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) and "insert" in one for one in operations):
        return None
    lines: list[str] = []
    line = ""
    for one in operations:
        attributes = one.get("attributes") if isinstance(one.get("attributes"), dict) else {}
        first, *further = one["insert"].split("\n") if isinstance(one["insert"], str) else [""]
        line += _inline({"text": first, "href": attributes.get("link")})
        for next_line in further:
            heading = attributes.get("header")
            element = f"h{heading}" if heading in range(1, 7) else "li" if attributes.get("list") else "p"
            lines.append(f"<{element}>{line}</{element}>")
            line = _inline({"text": next_line, "href": attributes.get("link")})
    return "".join([*lines, f"<p>{line}</p>"])
