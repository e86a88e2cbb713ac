"""Equations of Office Open XML (OMML) as a line of text: `x=(-b±√(b^2-4ac))/2a` (ECMA-376 part 1, 22.1)."""

import re
from collections import defaultdict
from typing import Any

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

_FORMS = {
    "f": "{num}/{den}", "sSup": "{e}^{sup}", "sSub": "{e}_{sub}", "sSubSup": "{e}_{sub}^{sup}", "rad": "√{deg}{e}",
    "sPre": "_{sub}^{sup}{e}", "nary": "{chr}_{sub}^{sup} {e}", "func": "{fName} {e}", "limLow": "{e}_{lim}",
    "limUpp": "{e}^{lim}",
}  # fmt: skip
_LISTS = {"m": "; ", "mr": ", ", "eqArr": "; "}
_NO_SCRIPT = re.compile(r"[_^](?=[\s^]|\Z)")
_OPERATORS = frozenset("+-−*/=±<> ")


def equation_text(element: Any) -> str:
    """The text of `m:oMath` or of any element in it."""
    name = element.tag.removeprefix(MATH) if isinstance(element.tag, str) else ""
    if name == "t":
        return element.text or ""
    texts = [
        (str(one.tag).removeprefix(MATH), equation_text(one)) for one in element if not str(one.tag).endswith("Pr")
    ]
    if name in _FORMS:
        parts = defaultdict(str, {part: _bracketed(text.strip()) for part, text in texts})
        parts["chr"] = _property(element, "chr", "∫")
        parts["deg"] = f"[{parts['deg']}]" if parts["deg"] else ""
        return _NO_SCRIPT.sub("", _FORMS[name].format_map(parts))
    if name == "d":
        written = _property(element, "sepChr", "|").join(text for _, text in texts)
        return _property(element, "begChr", "(") + written + _property(element, "endChr", ")")
    return _LISTS.get(name, "").join(text for _, text in texts)


def _bracketed(text: str) -> str:
    """A part in brackets if it has an operator: `(a+b)/2`."""
    is_whole = _OPERATORS.isdisjoint(text[1:]) or (text.startswith("(") and text.endswith(")"))
    return text if is_whole else f"({text})"


def _property(element: Any, name: str, default: str) -> str:
    found = element.find(f"{element.tag}Pr/{MATH}{name}")
    return default if found is None else found.get(f"{MATH}val", "")
