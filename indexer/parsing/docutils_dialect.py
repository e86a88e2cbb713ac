"""A docutils parser for reStructuredText from anywhere: roles and directives docutils does not know keep their text.

docutils knows only global registries; here its parsing states are subclassed instead, so nothing global is changed.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from docutils import nodes
from docutils.frontend import Values
from docutils.parsers.rst import Directive, Parser, states
from docutils.transforms import references

_TITLED = re.compile(r"(?P<title>.+?)\s*<(?P<target>[^<>]+)>\Z", re.DOTALL)
_PEP = re.compile(r"\d{1,5}")
_ESCAPED = re.compile(r"\x00[ \n]?")
_DIRECTIVE_START = re.compile(r"\.\.[ ]+[^\s:]+(?:[:+.][^\s:]+)*[ ]?::[ ]*")
_DOCUTILS_ROLES = ("sub", "subscript", "sup", "superscript", "emphasis", "strong", "literal", "code", "math", "raw")

_Ran = tuple[list[nodes.Node], bool]
_Interpreted = tuple[list[nodes.Node], list[nodes.system_message]]


def _interpreted(
    by_docutils: Callable[[str, str, str, int], _Interpreted], rawsource: str, text: str, role: str, lineno: int
) -> _Interpreted:
    """What interpreted text becomes: docutils' own roles by docutils, every other one by `_role_node`."""
    name = role.lower()
    if not name or name in _DOCUTILS_ROLES:
        return by_docutils(rawsource, text, role, lineno)
    return [_role_node(name, rawsource, _ESCAPED.sub("", text))], []


def _role_node(name: str, rawsource: str, text: str) -> nodes.Node:
    titled = _TITLED.fullmatch(text)
    title, target = (titled["title"], titled["target"]) if titled else (text, text)
    target = target.strip()
    kind = name.rpartition(":")[2]
    if kind in ("pep", "rfc"):
        number, _, anchor = target.partition("#")
        shown = title if titled else f"{kind.upper()} {number.strip()}"
        if _PEP.fullmatch(number.strip()):
            uri = f"pep-{int(number):04}" if kind == "pep" else f"rfc{int(number)}"
            return nodes.reference(rawsource, shown, refuri=f"{uri}#{anchor}" if anchor else uri)
        return nodes.inline(rawsource, shown)
    if kind in ("doc", "download"):
        return nodes.reference(rawsource, title, refuri=target)
    return nodes.inline(rawsource, title.lstrip("~!") if not titled else title)


class _AnyOption(dict[str, Callable[[str], Any]]):
    """Takes every option of a directive, as it is written."""

    def __missing__(self, name: str) -> Callable[[str], Any]:
        return lambda value: value


class _ReadAsText(Directive):
    """A directive that docutils does not know: argument and content are read as text, options fall away."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = _AnyOption(name=str)

    def run(self) -> list[nodes.Node]:
        container = nodes.container()
        for argument in self.arguments:
            inline, _ = self.state.inline_text(argument, self.lineno)
            container += nodes.paragraph(argument, "", *inline)
        self.state.nested_parse(self.content, self.content_offset, container)
        return [container]


class _ReadAsCode(_ReadAsText):
    """Code in a named language, with whatever options."""

    def run(self) -> list[nodes.Node]:
        code = "\n".join(self.content)
        return [nodes.literal_block(code, code)]


class _ReadAsGrammar(_ReadAsText):
    def run(self) -> list[nodes.Node]:
        rules = "\n".join([*self.arguments, "", *self.content])
        return [nodes.literal_block(rules, rules)]


class _Skipped(_ReadAsText):
    """Settings for a renderer."""

    def run(self) -> list[nodes.Node]:
        return []


_OWN_DIRECTIVES: dict[str, type[Directive]] = {
    **dict.fromkeys(("code", "code-block", "sourcecode", "prompt"), _ReadAsCode),
    "productionlist": _ReadAsGrammar,
    **dict.fromkeys(("highlight", "default-domain", "currentmodule", "py:currentmodule", "tabularcolumns"), _Skipped),
    **dict.fromkeys(("contents", "index", "sectnum", "toctree"), _Skipped),
}


class _StatesByName(dict[str, Any]):
    """The states of one machine, each made when it is first entered."""

    def __init__(self, machine: states.NestedStateMachine, classes: Iterable[type[Any]]) -> None:
        super().__init__()
        self._machine = machine
        self._classes = {state.__name__: state for state in classes}

    def __missing__(self, name: str) -> Any:
        state = self[name] = self._classes[name](self._machine, self._machine.debug)
        if hasattr(self._machine, "memo"):  # it has run, or is running: docutils prepares its states when a run begins
            state.runtime_init()
        return state


class _NestedMachine(states.NestedStateMachine):
    """For each list docutils makes all fifteen states anew, with their expressions; two or three of them are entered.

    That was a quarter of the time of parsing.
    """

    def add_states(self, state_classes: Iterable[type[Any]]) -> None:
        self.states = _StatesByName(self, state_classes)

    def attach_observer(self, observer: Callable[..., None]) -> None:
        """Nobody is told of each line's number in the source: that is for messages, which nobody reads."""


class _Tolerant:
    """What every parsing state does otherwise than docutils; nested parsing uses the same states."""

    nested_sm = _NestedMachine
    nested_sm_cache: list[object] = []  # noqa: RUF012 (docutils' own cache holds machines with its own states)

    @property
    def nested_sm_kwargs(self) -> dict[str, object]:
        return {"state_classes": _STATES, "initial_state": "Body"}

    @nested_sm_kwargs.setter
    def nested_sm_kwargs(self, value: dict[str, object]) -> None:
        """docutils sets its own states on every instance; these stay."""

    def run_directive(self: Any, known: type[Directive], match: re.Match[str], name: str, presets: Any) -> _Ran:
        chosen = _OWN_DIRECTIVES.get(name.lower(), known)
        ran: _Ran = super().run_directive(chosen, match, name, presets)  # type: ignore[misc]
        return ran

    def unknown_directive(self: Any, name: str) -> _Ran:
        match = _DIRECTIVE_START.match(self.state_machine.line)
        if match is None:
            refused: _Ran = super().unknown_directive(name)  # type: ignore[misc]
            return refused
        ran: _Ran = self.run_directive(_ReadAsText, match, name, {})
        return ran


_STATES = tuple(type(state.__name__, (_Tolerant, state), {}) for state in states.state_classes)


def _implicit(by_docutils: Callable[[str, int], list[nodes.Text]], text: str, lineno: int) -> list[nodes.Text]:
    """Addresses that stand in a text without markup. None does without a colon or an at sign: most texts are spared."""
    return by_docutils(text, lineno) if ":" in text or "@" in text or not text else [nodes.Text(text)]


_MARK = re.compile(r"[*`|_]")


class _FromFirstMark:
    """docutils' pattern for where inline markup begins, asked from the word on that holds the first of its signs.

    The pattern tries every word for being a reference; each construct it knows has a sign of markup in the word that it
    begins in. That was a sixth of the time of parsing.
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def search(self, text: str) -> re.Match[str] | None:
        mark = _MARK.search(text)
        if mark is None:
            return None
        return self._pattern.search(text, max(text.rfind(" ", 0, mark.start()), text.rfind("\n", 0, mark.start())) + 1)


def _customised(by_docutils: Callable[[Values], None], inliner: states.Inliner, settings: Values) -> None:
    by_docutils(settings)
    inliner.patterns.initial = _FromFirstMark(inliner.patterns.initial)


class TolerantParser(Parser):
    """Parses into a given document; never raises for what is in the text, never reads a file or the network."""

    def __init__(self) -> None:
        # Inliner reads its patterns off its own class, so that it cannot be subclassed; one instance is changed.
        inliner = states.Inliner()
        inliner.interpreted = partial(_interpreted, inliner.interpreted)  # type: ignore[method-assign]
        inliner.implicit_inline = partial(_implicit, inliner.implicit_inline)  # type: ignore[method-assign]
        inliner.init_customizations = partial(  # type: ignore[method-assign]
            _customised, inliner.init_customizations, inliner
        )
        super().__init__(inliner=inliner)
        self.state_classes = _STATES

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse; of the document nothing stays in docutils' machines, which would hold it beyond its time."""
        try:
            super().parse(inputstring, document)
        finally:
            _Tolerant.nested_sm_cache.clear()


def apply_references(document: nodes.document) -> None:
    """Resolve named and anonymous hyperlinks and number footnotes, in docutils' own order."""
    for transform in (
        references.PropagateTargets,
        references.AnonymousHyperlinks,
        references.IndirectHyperlinks,
        references.Footnotes,
        references.ExternalTargets,
    ):
        transform(document).apply()
