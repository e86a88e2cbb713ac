"""The parts of a view: segments numbered one after the other, which of their documents are dead, how newer ones gather.

Every part is immutable: a change makes a new tuple of parts, which shares the arrays of all that stay.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.columns import Keys, columns_of, document_key_of
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.merging import Dead, merged
from query_api.index.graph.rows import Numbers, Role, Statement, rows_of
from query_api.index.graph.segment import Segment
from schemas.contributions import Contribution
from schemas.ids import DocumentKey


@dataclass(frozen=True, slots=True)
class Part:
    """A segment within a view: which of its documents are dead, and where its numbers begin."""

    segment: Segment
    dead: Dead
    n_dead: int
    documents: int
    passages: int
    chunks: int

    def alive(self, passages: NDArray[np.integer]) -> NDArray[np.bool_]:
        if not self.n_dead:
            return np.ones(len(passages), dtype=bool)
        dead: Dead = self.dead[self.segment.passage_documents[passages]]
        return ~dead

    def naming(self, entities: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """(index into `entities`, chunk, passage) wherever the part mentions them, dead or alive."""
        which, _, chunks = self.segment.mentions.leaving(entities)
        return which, chunks, self.segment.passages_of(chunks)

    def names(self, entity: int) -> bool:
        """Whether a live document of the part mentions, states or is about the entity."""
        local = np.array([entity])
        segment = self.segment
        documents = segment.about.entering(local).others
        if len(documents) and not self.dead[documents].all():
            return True
        if self.alive(self.naming(local)[2]).any():
            return True
        chunks = segment.statements.of_entries(segment.roles.entering(local).others)
        return bool(self.alive(segment.passages_of(chunks)).any())

    def statements(self, asked: Numbers, statements: Numbers) -> Iterator[Statement]:
        """These statements of the part; `asked` has an index into what was asked for, for each."""
        segment = self.segment
        chunks = segment.statements.of_entries(statements)
        which, edges, entities = segment.roles.leaving(statements)
        roles: list[list[Role]] = [[] for _ in statements]
        keys = segment.entity_keys[entities].tolist()
        for at, name, key in zip(which.tolist(), segment.role_names.of(edges), keys, strict=True):
            roles[at].append(Role(name, key))
        columns = (
            asked,
            segment.statement_keys[statements],
            chunks + self.chunks,
            segment.passages_of(chunks) + self.passages,
            segment.confidences[statements],
            segment.statement_sentences[statements].astype(np.int64) - 1,
        )
        predicates = segment.predicates.of(statements)
        for (at, key, chunk, passage, confidence, sentence), predicate, of_one in zip(
            rows_of(*columns), predicates, roles, strict=True
        ):
            yield Statement(at, key, chunk, passage, predicate, confidence, sentence, tuple(of_one))


class Parts(tuple[Part, ...]):
    """The base, then the newer segments, oldest first."""

    __slots__ = ()

    @classmethod
    def numbered(cls, segments: Iterable[tuple[Segment, Dead]]) -> Self:
        numbered: list[Part] = []
        documents = passages = chunks = 0
        for segment, dead in segments:
            numbered.append(Part(segment, dead, int(dead.sum()), documents, passages, chunks))
            documents += segment.n_documents
            passages += segment.n_passages
            chunks += segment.n_chunks
        return cls(numbered)

    @classmethod
    def whole(cls, segment: Segment) -> Self:
        """One segment, all of it alive."""
        return cls.numbered([_alive(segment)])

    def changed(self, newest: Mapping[DocumentKey, Contribution | None]) -> Self:
        """What these documents held is dead; what they contribute now is the newest segment."""
        keys = np.array([document_key_of(key) for key in newest], dtype=np.uint64)
        segments = []
        for number, part in enumerate(self):
            held = part.segment.find_documents(keys)
            held = held[held != MISSING]
            dead = part.dead
            if len(held) and not dead[held].all():
                dead = dead.copy()
                dead[held] = True
            if number == 0 or not dead.all():
                segments.append((part.segment, dead))
        contributions = [contribution for contribution in newest.values() if contribution is not None]
        if contributions:
            segments.append(_alive(Segment.build(columns_of(contributions))))
        return self.numbered(_settled(segments))

    def compacted(self) -> Self:
        return self.whole(merged([(part.segment, part.dead) for part in self]))

    def of_document(self, document: int) -> Part:
        for part in reversed(self):
            if part.documents <= document:
                return part
        raise IndexError(f"There is no document {document}.")

    def of_passage(self, passage: int) -> Part:
        for part in reversed(self):
            if part.passages <= passage:
                return part
        raise IndexError(f"There is no passage {passage}.")

    def of_chunk(self, chunk: int) -> Part:
        for part in reversed(self):
            if part.chunks <= chunk:
                return part
        raise IndexError(f"There is no chunk {chunk}.")

    def holding(self, numbers: Numbers, kind: str) -> Iterator[tuple[Part, Numbers, Numbers]]:
        """For each part that holds some: (part, indices into `numbers`, their numbers in the part)."""
        if len(self) == 1:
            if len(numbers):
                yield self[0], np.arange(len(numbers)), numbers
            return
        begins = np.array([getattr(part, kind) for part in self])
        at = np.searchsorted(begins, numbers, side="right") - 1
        for number in np.unique(at).tolist():
            part = self[number]
            rows = np.flatnonzero(at == number)
            yield part, rows, numbers[rows] - begins[number]

    def knowing(self, entities: Keys) -> Iterator[tuple[Part, Numbers, Numbers]]:
        """For each part that knows some: (part, indices into `entities`, their numbers in the part)."""
        for part in self:
            held = part.segment.find_entities(entities)
            rows = np.flatnonzero(held != MISSING)
            if len(rows):
                yield part, rows, held[rows]

    def documents_of_keys(self, keys: Keys) -> Numbers:
        """Live documents by key, MISSING where there is none."""
        numbers = np.full(len(keys), MISSING, dtype=np.int64)
        for part in self:
            held = part.segment.find_documents(keys)
            rows = np.flatnonzero(held != MISSING)
            rows = rows[~part.dead[held[rows]]]
            numbers[rows] = held[rows] + part.documents
        return numbers

    def linked(self, keys: Keys, names: Keys) -> Numbers:
        """The live documents that links lead to: that of the key, else one that links find by the name, of several the
        one with the shortest id; MISSING where there is none."""
        found = self.documents_of_keys(keys)
        missing = np.flatnonzero(found == MISSING)
        if not len(missing):
            return found
        named = []
        for part in self:
            which, local = part.segment.document_names.find(names[missing])
            live = ~part.dead[local]
            named.append((missing[which[live]], local[live] + part.documents))
        rows, documents = (np.concatenate(column) for column in zip(*named, strict=True))
        found[rows] = documents
        for row in np.flatnonzero(np.bincount(rows) > 1).tolist():
            found[row] = min(documents[rows == row].tolist(), key=self._by_id)
        return found

    def _by_id(self, document: int) -> tuple[int, str]:
        part = self.of_document(document)
        identifier = part.segment.document_ids[document - part.documents]
        return len(identifier), identifier


def _alive(segment: Segment) -> tuple[Segment, Dead]:
    return segment, np.zeros(segment.n_documents, dtype=bool)


def _settled(segments: list[tuple[Segment, Dead]]) -> list[tuple[Segment, Dead]]:
    """Merge the newest segments while the one before is no larger: k documents end in at most 1 + log2 k segments.

    The base, which stands first, is never touched.
    """
    while len(segments) > 2 and _live(segments[-2]) <= _live(segments[-1]):
        segments[-2:] = [_alive(merged(segments[-2:]))]
    return segments


def _live(segment: tuple[Segment, Dead]) -> int:
    return int((~segment[1]).sum())
