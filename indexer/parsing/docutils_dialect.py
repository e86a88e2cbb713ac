"""A tolerant docutils parser: roles and directives that docutils does not know keep their text.

docutils only has global registries; its parsing states are subclassed instead, so that nothing global changes.
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
    """Interpreted text: docutils' own roles by docutils, every other one by `_role_node`."""
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
    """Accepts every option of a directive as a string."""

    def __missing__(self, name: str) -> Callable[[str], Any]:
        return lambda value: value


class _ReadAsText(Directive):
    """A directive that docutils does not know: argument and content become text, options are dropped."""

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
    """Code with any options."""

    def run(self) -> list[nodes.Node]:
        code = "\n".join(self.content)
        return [nodes.literal_block(code, code)]


class _ReadAsGrammar(_ReadAsText):
    def run(self) -> list[nodes.Node]:
        rules = "\n".join([*self.arguments, "", *self.content])
        return [nodes.literal_block(rules, rules)]


class _Skipped(_ReadAsText):
    """For renderers only."""

    def run(self) -> list[nodes.Node]:
        return []


_OWN_DIRECTIVES: dict[str, type[Directive]] = {
    **dict.fromkeys(("code", "code-block", "sourcecode", "prompt"), _ReadAsCode),
    "productionlist": _ReadAsGrammar,
    **dict.fromkeys(("highlight", "default-domain", "currentmodule", "py:currentmodule", "tabularcolumns"), _Skipped),
    **dict.fromkeys(("contents", "index", "sectnum", "toctree"), _Skipped),
}


class _StatesByName(dict[str, Any]):
    """The states of one machine, each created when first entered."""

    def __init__(self, machine: states.NestedStateMachine, classes: Iterable[type[Any]]) -> None:
        super().__init__()
        self._machine = machine
        self._classes = {state.__name__: state for state in classes}

    def __missing__(self, name: str) -> Any:
        state = self[name] = self._classes[name](self._machine, self._machine.debug)
        if hasattr(self._machine, "memo"):  # set once the machine runs, which is when docutils initialises its states
            state.runtime_init()
        return state


class _NestedMachine(states.NestedStateMachine):
    """docutils creates all fifteen states for each list and enters two or three: a quarter of the parsing time."""

    def add_states(self, state_classes: Iterable[type[Any]]) -> None:
        self.states = _StatesByName(self, state_classes)

    def attach_observer(self, observer: Callable[..., None]) -> None:
        """Line numbers of the source are for messages, which are not shown."""


class _Tolerant:
    """Mixin of every parsing state; nested parsing uses the same states."""

    nested_sm = _NestedMachine
    nested_sm_cache: list[object] = []  # noqa: RUF012 (docutils' own cache holds machines with its own states)

    @property
    def nested_sm_kwargs(self) -> dict[str, object]:
        return {"state_classes": _STATES, "initial_state": "Body"}

    @nested_sm_kwargs.setter
    def nested_sm_kwargs(self, value: dict[str, object]) -> None:
        """Ignored: docutils sets its own states on every instance."""

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
    """Addresses in plain text; all have a colon or an at sign, which spares most texts the search."""
    return by_docutils(text, lineno) if ":" in text or "@" in text or not text else [nodes.Text(text)]


_MARK = re.compile(r"[*`|_]")


class _FromFirstMark:
    """docutils' pattern for the start of inline markup, searched from the word with the first markup character.

    The pattern tries every word as a reference, a sixth of the parsing time; each construct it finds has a markup
    character in its first word.
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
    """Parses into a given document; never raises for any text, never reads a file or the network."""

    def __init__(self) -> None:
        # Inliner reads its patterns off its own class and cannot be subclassed; one instance is changed.
        inliner = states.Inliner()
        inliner.interpreted = partial(_interpreted, inliner.interpreted)  # type: ignore[method-assign]
        inliner.implicit_inline = partial(_implicit, inliner.implicit_inline)  # type: ignore[method-assign]
        inliner.init_customizations = partial(  # type: ignore[method-assign]
            _customised, inliner.init_customizations, inliner
        )
        super().__init__(inliner=inliner)
        self.state_classes = _STATES

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse, and clear docutils' cached machines, which would keep the document alive."""
        try:
            super().parse(inputstring, document)
        finally:
            _Tolerant.nested_sm_cache.clear()


def apply_references(document: nodes.document) -> None:
    """Resolve hyperlinks and number footnotes, in docutils' own order."""
    for transform in (
        references.PropagateTargets,
        references.AnonymousHyperlinks,
        references.IndirectHyperlinks,
        references.Footnotes,
        references.ExternalTargets,
    ):
        transform(document).apply()
