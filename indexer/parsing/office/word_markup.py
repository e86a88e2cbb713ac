"""Word's XML made such that mammoth loses none of its text: it drops each element that it does not know.

Headings are known by their styles' names, outline levels and the styles that these are based on. Shown is what Word
shows: results of fields without their codes, without hidden text.
"""

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from indexer.parsing.html_nesting import tag_names
from indexer.parsing.office.equations import MATH, equation_text

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_VAL = f"{W}val"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_VML = "{urn:schemas-microsoft-com:vml}"
_FALSE = ("0", "false", "off")
_MOST_STYLES = 20  # in a chain; Word allows about ten
_BODY_TEXT = 9  # the outline level of what is no heading
_LOCAL_NAMES = (
    "heading|überschrift|titre|título|titolo|kop|rubrik|overskrift|otsikko|nagłówek|nadpis|címsor|başlık|titlu|naslov"
    "|заголовок|επικεφαλίδα|見出し|标题|標題|제목"
)
_HEADING = re.compile(rf"(?:{_LOCAL_NAMES})\s*([1-9])", re.IGNORECASE)
# What mammoth reads the children of, or leaves out on purpose; other elements around text are removed.
_READ = frozenset(W + name for name in tag_names(
    "document body footnotes footnote endnotes endnote p r t tbl tr tc hyperlink ins moveTo del moveFrom smartTag "
    "customXml sdt sdtContent drawing object pict txbxContent"
)) | frozenset(_VML + name for name in tag_names("group rect roundrect shape textbox"))  # fmt: skip
LAYOUT = tuple(  # mammoth need not read it; readings of ruby
    W + name
    for name in sorted(tag_names(
        "rFonts sz szCs color lang kern spacing w position bdr shd ind jc tabs pBdr keepNext keepLines "
        "widowControl contextualSpacing noProof bCs iCs proofErr bookmarkStart bookmarkEnd lastRenderedPageBreak "
        "sectPr tblPr tblGrid tcW latentStyles docDefaults rt"
    ))
)  # fmt: skip

Level = int | None  # 0 of the title


class Styles:
    """What styles make of text: `levels` of headings, which get the names that mammoth knows, and what is `hidden`."""

    def __init__(self, root: Any | None) -> None:
        styles = [] if root is None else root.findall(f"{W}style")
        self._by_id = {style.get(f"{W}styleId", ""): style for style in styles}
        self.levels = {identity: self._level(identity) for identity in self._by_id}
        self.hidden = {identity: self._is_hidden(identity) for identity in self._by_id}
        for identity, level in self.levels.items():
            if level is not None:
                _child(self._by_id[identity], "name").set(_VAL, f"heading {level}" if level else "Title")
        for level in range(1, 10) if root is not None else ():  # of paragraphs with a level of their own
            own = {f"{W}type": "paragraph", f"{W}styleId": f"outline-level-{level}"}
            etree.SubElement(etree.SubElement(root, f"{W}style", own), f"{W}name", {_VAL: f"heading {level}"})

    def _is_hidden(self, identity: str) -> bool | None:
        said = (_is_on(style.find(f"{W}rPr/{W}vanish")) for style in self._chain(identity))
        return next((one for one in said if one is not None), None)

    def _level(self, identity: str) -> Level:
        for style in self._chain(identity):
            name = _value(style.find(f"{W}name")) or ""
            heading = _HEADING.fullmatch(name.strip())
            outline = _value(style.find(f"{W}pPr/{W}outlineLvl"))
            if name.casefold() == "title":
                return 0
            if heading or name.casefold() == "subtitle":
                return int(heading[1]) if heading else None
            if outline is not None:
                return _outline_level(outline)
        return None

    def _chain(self, identity: str) -> Iterator[Any]:
        """A style, the one that it is based on, and so on."""
        seen: set[str] = set()
        while identity in self._by_id and identity not in seen and len(seen) < _MOST_STYLES:
            seen.add(identity)
            yield (style := self._by_id[identity])
            identity = _value(style.find(f"{W}basedOn")) or ""


def prepare(root: Any, styles: Styles) -> None:
    """Change the tree of a document, of footnotes or of endnotes."""
    for choice in list(root.iter(f"{_COMPATIBILITY}AlternateContent")):
        fallback = choice.find(f"{_COMPATIBILITY}Fallback")
        others = choice.findall(f"{_COMPATIBILITY}Choice")
        said = fallback if fallback is not None and (_has_text(fallback) or not any(map(_has_text, others))) else None
        _replace(choice, said if said is not None else others[0] if others else ())
    for unseen in [*_field_codes(root), *(run for run in root.iter(f"{W}r") if _is_hidden(run, styles))]:
        _replace(unseen, ())
    for choices in list(root.iter(f"{W}ddList")):
        _write_choice(choices)
    for equation in list(root.iter(f"{MATH}oMath")):
        _replace(equation, [_run(f" {' '.join(equation_text(equation).split())} ")])
    for box in list(root.iter(f"{W}txbxContent")):
        drawing = next(box.iterancestors(f"{W}drawing"), None)
        if drawing is not None:  # mammoth reads text boxes of VML only
            drawing.addnext(etree.Element(f"{W}pict"))
            etree.SubElement(drawing.getnext(), f"{_VML}textbox").append(box)
    for text in list(root.iter(f"{W}t")):
        for around in [one for one in text.iterancestors() if one.tag not in _READ and one is not root]:
            _replace(around, around)
    for properties in root.iter(f"{W}pPr"):
        _set_level(properties, styles)


def _write_choice(choices: Any) -> None:
    """A list to choose from, in an old form: what is chosen is no text."""
    entries = [_value(entry) or "" for entry in choices.findall(f"{W}listEntry")]
    chosen = _value(choices.find(f"{W}result")) or _value(choices.find(f"{W}default")) or "0"
    run = next(choices.iterancestors(f"{W}r"), None)
    if run is not None and chosen.isdecimal() and int(chosen) < len(entries):
        run.addnext(_run(entries[int(chosen)]))


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
    opened: list[list[Any] | None] = []  # of each open field the texts in its code; None once its result has begun
    for element in root.iter(f"{W}t", f"{W}fldChar"):
        kind = element.get(f"{W}fldCharType")
        if kind == "begin":
            opened.append([])
        elif kind and opened:
            codes += opened.pop() or ()
            opened += [None] if kind == "separate" else []
        elif not kind:
            for texts in opened:
                if texts is not None:
                    texts.append(element)
    return codes


def _set_level(properties: Any, styles: Styles) -> None:
    """An outline level of the paragraph itself counts before that of its style."""
    outline = _value(properties.find(f"{W}outlineLvl"))
    if outline is None:
        return
    level = _outline_level(outline)
    style = _child(properties, "pStyle")
    if level is not None or styles.levels.get(style.get(_VAL, "")) is not None:
        style.set(_VAL, "" if level is None else f"outline-level-{level}")


def _outline_level(outline: str) -> Level:
    return int(outline) + 1 if outline.isdecimal() and int(outline) < _BODY_TEXT else None


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


def _replace(element: Any, others: Any) -> None:
    """Put others, such as its children, in place of an element."""
    parent = element.getparent()
    if parent is not None:
        at = parent.index(element)
        parent[at : at + 1] = list(others)
