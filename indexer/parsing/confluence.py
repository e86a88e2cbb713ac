"""Confluence's storage format (https://confluence.atlassian.com/doc/confluence-storage-format-790796544.html) as HTML.

Macros are blocks, their code is preformatted, links to pages lead to a title, tasks are items; of a macro's parameters
only those that it shows are text.
"""

import re
from html import escape, unescape

_TAG = re.compile(r"<(/?)(?:(?:ac|ri):([a-z-]+)|(time)(?=[^<>]*/>))([^<>]*?)(/?)>")
_ATTRIBUTE = re.compile(r"(?:[a-z]+:)?([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_CDATA = "<![CDATA["
_SHOWN = ("title", "key", "url", "summary")
_IN_A_LINE = ("status", "jira", "anchor", "mathinline", "emoji")
_LEFT_OUT = ("task-id", "task-uuid", "placeholder", "adf-attribute", "adf-fallback")
_ELEMENTS = {
    "task-list": "ul", "task": "li", "task-body": "span", "task-status": "span", "link-body": "span", "caption": "p",
    "plain-text-body": "pre><code", "plain-text-link-body": "span",
}  # fmt: skip


def with_cdata(markup: str) -> str:
    """What CDATA sections hold, as text: to HTML they are comments that end at the first `>`."""
    first, *pieces = markup.split(_CDATA)
    kept = [first]
    for piece in pieces:
        text, end, rest = piece.partition("]]>")
        kept += (escape(text), rest) if end else (_CDATA, piece)
    return "".join(kept)


def as_html(markup: str) -> str:
    storage = _Storage()
    return _TAG.sub(storage.tag, markup)


class _Storage:
    def __init__(self) -> None:
        self._opened: list[str] = []
        self._link: str | None = None  # what the open link is called, where nothing else is written for it

    def tag(self, match: re.Match[str]) -> str:
        name, is_empty = match[2] or match[3], bool(match[5])
        if match[1]:
            return self._end(name)
        given = {key: unescape(one or other) for key, one, other in _ATTRIBUTE.findall(match[4])}
        written = self._start(name, given)
        return written + self._end(name) if is_empty else written

    def _start(self, name: str, given: dict[str, str]) -> str:
        if name in ("page", "blog-post", "attachment", "url", "content-entity", "shortcut"):
            return self._target(given)
        if name in ("link", "time", "emoticon", "image"):
            self._link = "" if name == "link" else self._link
            alt = f'<img alt="{escape(given.get("alt", ""))}">' if name == "image" else ""
            return alt + escape(given.get("datetime") or given.get("emoji-fallback") or "")
        if name in ("plain-text-link-body", "link-body"):
            self._link = self._link and " "
        element = _ELEMENTS.get(name, "div")
        if name in _LEFT_OUT or (name == "parameter" and given.get("name") not in _SHOWN):
            element = "template"
        elif name == "parameter" or given.get("name") in _IN_A_LINE:
            element = "span"
        self._opened.append(element)
        return f"<{element}>"

    def _target(self, given: dict[str, str]) -> str:
        title = given.get("content-title") or given.get("filename") or given.get("value") or ""
        if self._link is None or not title:
            return ""
        self._link = title
        return f'<a href="{escape(title)}">'

    def _end(self, name: str) -> str:
        if name == "link":
            written = f"{escape(self._link.strip())}</a>" if self._link else ""
            self._link = None
            return written
        if name in _ELEMENTS or self._is_open(name):
            element = self._opened.pop() if self._opened else "span"
            stated = ": " if name == "task-status" else ""
            return stated + "".join(f"</{part}>" for part in reversed(element.split("><")))
        return ""

    def _is_open(self, name: str) -> bool:
        return name not in ("page", "user", "space", "attachment", "url", "time", "emoticon", "image", "blog-post")
