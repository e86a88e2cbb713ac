"""Concept maps: entities and the facts between them, as a Mermaid flowchart.

Nothing that a document says is Mermaid's or HTML: a label is quoted, and has each sign that is no letter, digit, blank
or comma as a character code (https://mermaid.js.org/syntax/flowchart.html).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

from query_api.entities.entity_facts import Fact, Identity

MOST_EDGES = 2  # for each concept
MOST_LABEL = 80
CHECKS = 3

_CODED = re.compile(r"[^\w ,]|_")
_LABEL = r'"(?:[^\W_]|[ ,]|#\d{1,7};)+"'
_HEAD, _NODE = "flowchart LR", re.compile(rf"  (n\d+)\[{_LABEL}\]")
_EDGE = re.compile(rf"  (n\d+) -->\|{_LABEL}\| (n\d+)")


def grown(
    facts: Sequence[Fact], worth: Callable[[Identity], float], count: int, start: Identity | None
) -> list[Identity]:
    """At most `count` ends of the facts, connected by them: from the start, else from the worthiest, always the next by
    the strongest fact and the worthiest end (Prim 1957); where nothing leads on, from the worthiest end of the rest."""
    ends = {end.identity for fact in facts for end in fact.ends}
    order = sorted(ends, key=lambda end: (-worth(end), end))
    chosen: dict[Identity, None] = {} if start is None else {start: None}
    while len(chosen) < min(count, len(ends)):
        leading = [
            (fact.strength + worth(new), new)
            for fact in facts
            for known, new in permutations([end.identity for end in fact.ends], 2)
            if known in chosen and new not in chosen
        ]
        if not leading and start is not None:
            break
        best = min(((-value, end) for value, end in leading), default=None)
        chosen[best[1] if best else next(end for end in order if end not in chosen)] = None
    return list(chosen)


def relations_among(facts: Iterable[Fact], ends: Sequence[Identity]) -> list[Fact]:
    """The facts between two of these ends, one for each pair, the strongest first; at most twice as many as ends."""
    found: dict[frozenset[Identity], Fact] = {}
    for fact in facts:
        pair = frozenset(end.identity for end in fact.ends)
        if len(pair) == 2 and pair <= set(ends):
            found.setdefault(pair, fact)
    return list(found.values())[: MOST_EDGES * len(ends)]


def mermaid(labels: Sequence[str], edges: Iterable[tuple[int, str, int]]) -> str:
    """The flowchart of nodes with these labels and edges between them, by their numbers. Checked at most three times:
    a line that Mermaid may not read as it is meant gets plain labels, and is left out where that does not help."""
    lines = [f'  n{at}["{_coded(label)}"]' for at, label in enumerate(labels)]
    lines += [f'  n{source} -->|"{_coded(predicate)}"| n{target}' for source, predicate, target in edges]
    for check in range(CHECKS):
        faults = _faults(lines)
        if not faults:
            break
        if check == 0:
            lines = [_plain(line) if at in faults else line for at, line in enumerate(lines)]
        else:
            lines = [line for at, line in enumerate(lines) if at not in faults]
    return "\n".join([_HEAD, *lines, ""])


def _coded(label: str) -> str:
    words = " ".join(label.split())[:MOST_LABEL].strip() or "…"
    return _CODED.sub(lambda sign: f"#{ord(sign[0])};", words)


def _faults(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines that are neither a node nor an edge between two nodes."""
    nodes = {found[1] for line in lines if (found := _NODE.fullmatch(line))}
    edges = ((at, _EDGE.fullmatch(line)) for at, line in enumerate(lines) if not _NODE.fullmatch(line))
    return {at for at, found in edges if found is None or not {found[1], found[2]} <= nodes}


def _plain(line: str) -> str:
    """With nothing but letters and digits in its label."""
    before, _, rest = line.partition('"')
    label, _, after = rest.rpartition('"')
    words = " ".join(re.findall(r"[^\W_]+", re.sub(r"#\d+;", " ", label)))
    return f'{before}"{words or "x"}"{after}'
