"""Equations of Office Open XML (OMML) as a line of text: `x=(-b±√(b^2-4ac))/2a` (ECMA-376 part 1, 22.1)."""

from typing import Any

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

_PROPERTIES = "Pr"  # the end of the names of elements without text
_OPERATORS = frozenset("+-−*/=±<> ")


def equation_text(element: Any) -> str:
    """The text of `m:oMath` or of any element in it."""
    name = element.tag.removeprefix(MATH) if isinstance(element.tag, str) else ""
    if name == "t":
        return element.text or ""
    if name == "f":
        return f"{_group(element, 'num')}/{_group(element, 'den')}"
    if name in ("sSup", "sSub", "sSubSup", "sPre"):
        return _text(element, "e") + _scripts(element)
    if name == "rad":
        degree = _text(element, "deg")
        return f"√{f'[{degree}]' if degree else ''}({_text(element, 'e')})"
    if name == "nary":
        return f"{_property(element, 'chr', '∫')}{_scripts(element)} {_text(element, 'e')}"
    if name == "d":
        parts = [equation_text(child) for child in element.findall(f"{MATH}e")]
        inner = _property(element, "sepChr", "|").join(parts)
        return _property(element, "begChr", "(") + inner + _property(element, "endChr", ")")
    if name == "func":
        return f"{_text(element, 'fName')}({_text(element, 'e')})"
    if name in ("limLow", "limUpp"):
        return _text(element, "e") + ("_" if name == "limLow" else "^") + _group(element, "lim")
    if name in ("m", "eqArr"):
        return "; ".join(
            ", ".join(equation_text(cell) for cell in row) if name == "m" else equation_text(row)
            for row in element.findall(f"{MATH}{'mr' if name == 'm' else 'e'}")
        )
    return "".join(
        equation_text(child) for child in element if not str(child.tag).endswith(_PROPERTIES)
    )


def _scripts(element: Any) -> str:
    return "".join(
        mark + _group(element, name) for mark, name in (("_", "sub"), ("^", "sup")) if _text(element, name)
    )


def _text(element: Any, name: str) -> str:
    found = element.find(MATH + name)
    return "" if found is None else equation_text(found).strip()


def _group(element: Any, name: str) -> str:
    """A part in brackets if it has an operator: `(a+b)/2`."""
    text = _text(element, name)
    return text if _OPERATORS.isdisjoint(text[1:]) or text.startswith("(") and text.endswith(")") else f"({text})"


def _property(element: Any, name: str, default: str) -> str:
    found = element.find(f"{MATH}{element.tag.removeprefix(MATH)}Pr/{MATH}{name}")
    return default if found is None else found.get(f"{MATH}val", "")
