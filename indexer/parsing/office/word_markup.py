"""Word's XML made such that mammoth loses none of its text: it drops each element that it does not know.

Headings are told by their styles' names, outline levels and the styles that these are based on. Shown is what Word
shows: results of fields without their codes, without hidden text.
"""

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from indexer.parsing.html import tag_names
from indexer.parsing.office.equations import MATH, equation_text

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MAX_HEADING_LEVEL = 9
TITLE_LEVEL = 0

_VAL = f"{W}val"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_VML = "{urn:schemas-microsoft-com:vml}"
_FALSE = ("0", "false", "off")
_BODY_TEXT = 9  # the outline level of what is no heading
_LOCAL_NAMES = (
    "heading|überschrift|titre|título|titolo|kop|rubrik|overskrift|otsikko|nagłówek|nadpis|címsor|başlık|titlu|naslov"
    "|заголовок|επικεφαλίδα|見出し|标题|標題|제목"
)
_HEADING = re.compile(rf"(?:{_LOCAL_NAMES})\s*([1-9])", re.IGNORECASE)
# What mammoth reads the children of, or leaves out on purpose; other elements around text are taken away.
_READ = frozenset(W + name for name in tag_names(
    "document body footnotes footnote endnotes endnote p r t tbl tr tc hyperlink ins moveTo del moveFrom smartTag "
    "customXml sdt sdtContent drawing object pict txbxContent"
)) | frozenset(_VML + name for name in tag_names("group rect roundrect shape textbox"))  # fmt: skip
_LAYOUT = tuple(
    W + name
    for name in sorted(tag_names(
        "rFonts sz szCs color lang kern spacing w position bdr shd ind jc tabs pBdr keepNext keepLines "
        "widowControl contextualSpacing noProof bCs iCs proofErr bookmarkStart bookmarkEnd lastRenderedPageBreak "
        "sectPr tblPr tblGrid tcW latentStyles docDefaults rt"
    ))
)  # fmt: skip

Level = int | None


def without_layout(root: Any) -> None:
    etree.strip_elements(root, *_LAYOUT, with_tail=False)


class Styles:
    """What styles make of text: `levels` of headings, which get the names that mammoth knows, and what is `hidden`."""

    def __init__(self, root: Any | None) -> None:
        styles = [] if root is None else root.findall(f"{W}style")
        self._by_id = {style.get(f"{W}styleId", ""): style for style in styles}
        self.levels = {identity: self._level(identity) for identity in self._by_id}
        self.hidden = {identity: self._is_hidden(identity) for identity in self._by_id}
        for identity, level in self.levels.items():
            if level is not None and self._by_id[identity].get(f"{W}type") == "paragraph":
                _child(self._by_id[identity], "name").set(_VAL, _style_name(level))
        for level in range(TITLE_LEVEL, MAX_HEADING_LEVEL + 1) if root is not None else ():
            style = etree.SubElement(root, f"{W}style", {f"{W}type": "paragraph", f"{W}styleId": _style_id(level)})
            etree.SubElement(style, f"{W}name", {_VAL: _style_name(level)})

    def _is_hidden(self, identity: str) -> bool | None:
        told = (_is_on(style.find(f"{W}rPr/{W}vanish")) for style in self._chain(identity))
        return next((one for one in told if one is not None), None)

    def _level(self, identity: str) -> Level:
        for style in self._chain(identity):
            name = _value(style.find(f"{W}name")) or ""
            heading = _HEADING.fullmatch(name.strip())
            outline = _value(style.find(f"{W}pPr/{W}outlineLvl"))
            if name.casefold() == "title":
                return TITLE_LEVEL
            if heading or name.casefold() == "subtitle":
                return int(heading[1]) if heading else None
            if outline is not None:
                return _outline_level(outline)
        return None

    def _chain(self, identity: str | None) -> Iterator[Any]:
        """A style, the one that it is based on, and so on."""
        seen: set[str | None] = set()
        while identity in self._by_id and identity not in seen:
            seen.add(identity)
            yield self._by_id[identity or ""]
            identity = _value(self._by_id[identity or ""].find(f"{W}basedOn"))


def prepare(root: Any, styles: Styles) -> None:
    """Change the tree of a document, of footnotes or of endnotes."""
    for choice in list(root.iter(f"{_COMPATIBILITY}AlternateContent")):
        fallback = choice.find(f"{_COMPATIBILITY}Fallback")
        others = choice.findall(f"{_COMPATIBILITY}Choice")
        told = fallback if fallback is not None and (_has_text(fallback) or not any(map(_has_text, others))) else None
        _replace(choice, told if told is not None else others[0] if others else ())
    _leave_out(_field_codes(root))
    _leave_out([run for run in root.iter(f"{W}r") if _is_hidden(run, styles)])
    for chosen in list(root.iter(f"{W}ddList")):
        _write_choice(chosen)
    for equation in list(root.iter(f"{MATH}oMath")):
        _replace(equation, [_run(f" {' '.join(equation_text(equation).split())} ")])
    for box in list(root.iter(f"{W}txbxContent")):
        _move_out_of_drawing(box)
    for text in list(root.iter(f"{W}t")):
        for around in list(text.iterancestors()):
            if around.tag not in _READ and around.getparent() is not None:
                _replace(around, around)
    for properties in root.iter(f"{W}pPr"):
        _set_level(properties, styles)


def _is_hidden(run: Any, styles: Styles) -> bool:
    own = _is_on(run.find(f"{W}rPr/{W}vanish"))
    if own is None:
        own = styles.hidden.get(_value(run.find(f"{W}rPr/{W}rStyle")) or "")
    if own is None:
        paragraph = next(run.iterancestors(f"{W}p"), None)
        own = paragraph is not None and styles.hidden.get(_value(paragraph.find(f"{W}pPr/{W}pStyle")) or "")
    return bool(own)


def _field_codes(root: Any) -> list[Any]:
    """Text in the codes of complex fields, such as results of fields in it; nothing of a field that never ends."""
    codes: list[Any] = []
    opened: list[tuple[list[Any], bool]] = []  # (texts in its code, whether its result has begun)
    for element in root.iter(f"{W}t", f"{W}fldChar"):
        kind = element.get(f"{W}fldCharType")
        if kind == "begin":
            opened.append(([], False))
        elif kind and opened:
            texts, is_result = opened.pop()
            codes += [] if is_result else texts
            opened += [(texts, True)] if kind == "separate" else []
        elif kind is None:
            for texts, is_result in opened:
                texts += [] if is_result else [element]
    return codes


def _write_choice(choices: Any) -> None:
    """Of a list to choose from, in a form of old Word: the entry that is chosen."""
    entries = [_value(entry) or "" for entry in choices.findall(f"{W}listEntry")]
    chosen = _value(choices.find(f"{W}result")) or _value(choices.find(f"{W}default")) or "0"
    run = next(choices.iterancestors(f"{W}r"), None)
    if run is not None and chosen.isdecimal() and int(chosen) < len(entries):
        run.addnext(_run(entries[int(chosen)]))


def _move_out_of_drawing(box: Any) -> None:
    drawing = next((one for one in box.iterancestors(f"{W}drawing")), None)
    if drawing is not None and next(box.iterancestors(f"{_DRAWING}inline", f"{_DRAWING}anchor"), None) is not None:
        shown = etree.Element(f"{W}pict")
        etree.SubElement(shown, f"{_VML}textbox").append(box)
        drawing.addnext(shown)


def _set_level(properties: Any, styles: Styles) -> None:
    """An outline level of the paragraph itself counts before that of its style."""
    outline = _value(properties.find(f"{W}outlineLvl"))
    if outline is None:
        return
    level = _outline_level(outline)
    style = _child(properties, "pStyle")
    if level is not None or styles.levels.get(style.get(_VAL, "")) is not None:
        style.set(_VAL, "" if level is None else _style_id(level))


def _outline_level(outline: str) -> Level:
    return int(outline) + 1 if outline.isdecimal() and int(outline) < _BODY_TEXT else None


def _style_name(level: int) -> str:
    return f"heading {level}" if level else "Title"


def _style_id(level: int) -> str:
    return f"outline-level-{level}"


def _has_text(element: Any) -> bool:
    return next(element.iter(f"{W}t"), None) is not None


def _is_on(switch: Any | None) -> bool | None:
    return None if switch is None else switch.get(_VAL) not in _FALSE


def _value(element: Any | None) -> str | None:
    return None if element is None else element.get(_VAL)


def _child(parent: Any, name: str) -> Any:
    found = parent.find(W + name)
    return etree.SubElement(parent, W + name) if found is None else found


def _run(text: str) -> Any:
    run = etree.Element(f"{W}r")
    etree.SubElement(run, f"{W}t").text = text
    return run


def _leave_out(elements: list[Any]) -> None:
    for element in elements:
        if element.getparent() is not None:
            element.getparent().remove(element)


def _replace(element: Any, others: Any) -> None:
    """Put others, such as its children, in place of an element."""
    parent = element.getparent()
    at = parent.index(element)
    parent[at : at + 1] = list(others)
