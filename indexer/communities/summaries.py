"""Titles and extractive summaries of communities: nothing is written that no document says."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from indexer.chunking.sentences import language_of, sentence_spans
from indexer.communities.partition import Level

TITLE_NAMES = 3
TITLE_NAME_CHARACTERS = 32
TYPE_SHARE = 0.5  # of the members, for their type to be in the title
SENTENCES: dict[Level, tuple[int, int]] = {"fine": (2, 3), "medium": (3, 4), "coarse": (4, 6)}
SENTENCE_CHARACTERS = (30, 400)
OF_ONE_DOCUMENT = 2
KNOWN_MEMBER = 0.3  # what naming a member again is worth
UNFINISHED = 0.5  # what a line without a full stop is worth: a heading, an item, a cell

PLURALS = {
    "person": "People",
    "organisation": "Organisations",
    "place": "Places",
    "time": "Times",
    "work": "Works",
    "product": "Products",
    "event": "Events",
    "identifier": "Identifiers",
    "concept": "Concepts",
}

_STOP = re.compile(r"[.!?。！？।॥؟۔][\"'”’»)\]]*$")

Texts = Callable[[Sequence[str]], Mapping[str, str]]
"""Chunk ids → their texts, without those of chunks that are gone. May raise TransientStoreError."""


class Member(msgspec.Struct, frozen=True):
    """An entity of a community. `strength` is the weight of its edges to other members; `is_value`: fields hold it."""

    entity: str
    label: str
    type: str
    strength: float
    is_value: bool = False


class SourceChunk(msgspec.Struct, frozen=True):
    """A chunk that mentions members, by their places in the list of members."""

    id: str
    document_id: str
    members: tuple[int, ...]


class SummarySentence(msgspec.Struct, frozen=True):
    """A sentence of a document, as written there."""

    text: str
    chunk_id: str
    document_id: str


def title_of(members: Sequence[Member]) -> tuple[str, str]:
    """(title, the type of most members or ""). `members` come strongest first; the title names the first three that
    are short of what documents speak of: values and identifiers only where there is nothing else."""
    types = Counter(member.type for member in members)
    kind, count = max(types.items(), key=lambda each: (each[1], each[0]))
    common = kind if count > TYPE_SHARE * len(members) else ""
    grades = [2 if member.is_value else int(member.type == "identifier") for member in members]
    named = [member for member, grade in zip(members, grades, strict=True) if grade == min(grades)]
    short = [member for member in named if len(member.label) <= TITLE_NAME_CHARACTERS][:TITLE_NAMES] or named[:1]
    prefix = f"{PLURALS[common]}: " if common in PLURALS and common in {member.type for member in short} else ""
    return prefix + ", ".join(member.label[:TITLE_NAME_CHARACTERS].rstrip() for member in short), common


def summary_of(
    level: Level, members: Sequence[Member], chunks: Sequence[SourceChunk], texts: Mapping[str, str]
) -> tuple[SummarySentence, ...]:
    """Sentences of these chunks that name much of what is central, best first; each further one counts little for what
    those before it name (maximal marginal relevance: Carbonell and Goldstein 1998).

    At most two sentences of one document. As many as the level's least number where there are so many; up to its most,
    while they name members that none before does.
    """
    candidates = _candidates(members, chunks, texts)
    least, most = SENTENCES[level]
    chosen: list[SummarySentence] = []
    known: set[int] = set()
    documents: Counter[str] = Counter()
    while candidates and len(chosen) < most:
        worth = [
            form * math.fsum(members[at].strength * (KNOWN_MEMBER if at in known else 1.0) for at in named)
            for _, named, form in candidates
        ]
        best = max(range(len(candidates)), key=lambda at: (worth[at], -at))
        source, named, _ = candidates.pop(best)
        if len(chosen) >= least and known.issuperset(named):
            continue
        if documents[source.document_id] >= OF_ONE_DOCUMENT:
            continue
        documents[source.document_id] += 1
        known.update(named)
        chosen.append(source)
    return tuple(chosen)


def _candidates(
    members: Sequence[Member], chunks: Sequence[SourceChunk], texts: Mapping[str, str]
) -> list[tuple[SummarySentence, tuple[int, ...], float]]:
    """Each sentence of a summary's length that names members, once; which it names, and a factor of its form."""
    found: dict[str, tuple[SummarySentence, tuple[int, ...], float]] = {}
    for chunk in chunks:
        text = texts.get(chunk.id, "")
        for start, end in sentence_spans(text, language=language_of(text)):
            sentence = " ".join(text[start:end].split())
            if not SENTENCE_CHARACTERS[0] <= len(sentence) <= SENTENCE_CHARACTERS[1] or sentence in found:
                continue
            named = tuple(at for at in chunk.members if _names(sentence, members[at].label))
            if named:
                form = 1.0 if _STOP.search(sentence) else UNFINISHED
                source = SummarySentence(sentence, chunk.id, chunk.document_id)
                found[sentence] = source, named, form / math.sqrt(len(sentence))
    return list(found.values())


def _names(sentence: str, label: str) -> bool:
    """Whether the sentence holds the label as whole words, whatever the case."""
    text, name = sentence.casefold(), label.casefold()
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (at and text[at - 1].isalnum()) and not (end < len(text) and text[end].isalnum()):
            return True
        at = text.find(name, at + 1)
    return False
