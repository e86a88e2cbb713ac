"""Documents with labelled mentions, entities and relations, and sentences with labelled mentions alone.

Two forms of lines, as in Re-DocRED and CrossNER, in `*.jsonl` or `*.jsonl.gz`:

- {_id, title, sents: [[token]], entities: [{type, mentions: [{sent, start, end}]}], relations: [{h, t}]}, in
  `<split>.jsonl[.gz]`. `start` and `end` count tokens of the sentence `sent`; `h` and `t` number the entities.
- {domain, tokens, entities: [[start, end, type]]}, in `*.<split>.jsonl[.gz]`.

The text is the tokens, joined by blanks. Labels count characters of it.
"""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from schemas.errors import WrongSetting

SPLITS = ("dev", "test")


class LabelledMention(NamedTuple):
    """`text[start:end]` names the entity of this number in its document."""

    start: int
    end: int
    kind: str
    entity: int


class LabelledGraph(NamedTuple):
    """A document, or a sentence of a domain, in which case `title` is empty and every mention an entity of its own.

    `relations` are pairs of entities.
    """

    id: str
    title: str
    text: str
    mentions: Sequence[LabelledMention]
    relations: Sequence[tuple[int, int]]
    domain: str = ""


class _Mention(msgspec.Struct):
    sent: int
    start: int
    end: int


class _Entity(msgspec.Struct):
    type: str
    mentions: list[_Mention]


class _Relation(msgspec.Struct):
    h: int
    t: int


class _Document(msgspec.Struct):
    id: str = msgspec.field(name="_id")
    title: str
    sents: list[list[str]]
    entities: list[_Entity]
    relations: list[_Relation] = []


class _Sentence(msgspec.Struct):
    domain: str
    tokens: list[str]
    entities: list[tuple[int, int, str]]


def read_graphs(folder: Path, split: str | None = None) -> tuple[str, list[LabelledGraph]]:
    """The split that was read, dev where there is one, and its documents, by file and line.

    Raises WrongSetting, with a sentence that says what to do.
    """
    if not folder.is_dir():
        raise WrongSetting(f"There is no folder {str(folder)!r}; name one that holds dev.jsonl[.gz].")
    for name in (split,) if split else SPLITS:
        files = sorted(
            {*folder.glob(f"{name}.jsonl"), *folder.glob(f"{name}.jsonl.gz")}
            or {*folder.glob(f"*.{name}.jsonl"), *folder.glob(f"*.{name}.jsonl.gz")}
        )
        if files:
            found = [graph for file in files for graph in _read(file)]
            if not found:
                raise WrongSetting(f"{folder} has no documents in its split {name}; name another folder.")
            return name, found
    wanted = f"{split}.jsonl[.gz]" if split else " and no ".join(f"{name}.jsonl[.gz]" for name in SPLITS)
    raise WrongSetting(f"{folder} holds no {wanted}; choose another split with --split, or another folder.")


def _read(file: Path) -> Iterator[LabelledGraph]:
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _graph(msgspec.json.decode(line), f"{file.name}:{number}")
    except (OSError, EOFError, msgspec.DecodeError, UnicodeDecodeError, IndexError) as error:
        raise WrongSetting(f"{file} has a line that is not a labelled document: {error}. Repair it.") from error


def _graph(line: Any, place: str) -> LabelledGraph:
    if isinstance(line, dict) and "tokens" in line:
        sentence = msgspec.convert(line, _Sentence)
        text, starts, ends = _joined([sentence.tokens])
        mentions = [
            LabelledMention(starts[0][start], ends[0][end - 1], kind, number)
            for number, (start, end, kind) in enumerate(sentence.entities)
        ]
        return LabelledGraph(place, "", text, mentions, (), sentence.domain)
    document = msgspec.convert(line, _Document)
    text, starts, ends = _joined(document.sents)
    mentions = sorted(
        LabelledMention(starts[one.sent][one.start], ends[one.sent][one.end - 1], entity.type, number)
        for number, entity in enumerate(document.entities)
        for one in entity.mentions
    )
    relations = [(relation.h, relation.t) for relation in document.relations]
    return LabelledGraph(document.id, document.title, text, mentions, relations)


def _joined(sentences: Sequence[Sequence[str]]) -> tuple[str, list[list[int]], list[list[int]]]:
    """The text, and where each token of each sentence starts and ends."""
    starts: list[list[int]] = []
    ends: list[list[int]] = []
    at = 0
    for tokens in sentences:
        starts.append([])
        ends.append([])
        for token in tokens:
            starts[-1].append(at)
            ends[-1].append(at + len(token))
            at += len(token) + 1
    return " ".join(token for tokens in sentences for token in tokens), starts, ends
