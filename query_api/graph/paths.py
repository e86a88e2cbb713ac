"""A hit's path: from the question, over what it names or what fits it, to the passage; each step with its evidence."""

from collections.abc import Callable, Iterable

from indexer.sentences import sentence_spans
from query_api.graph.findings import Findings
from query_api.graph.query_links import QueryLink
from query_api.graph.terms import Parent, Reason
from query_api.graph_view import GraphView
from query_api.question import Question, normalise_text
from schemas.api import PathEdge

QUESTION = "question"
MAX_EVIDENCE_CHARACTERS = 500

_FROM_PARENT = frozenset({"mentions", "mentioned_by", "shares", "links_to", "linked_from", "states", "continues"})

ChunkTexts = Callable[[str], str | None]


class Trail:
    """The ways one search took through the graph."""

    def __init__(self, question: Question, view: GraphView, findings: Findings) -> None:
        self._question = question
        self._view = view
        self._reasons = findings.reasons
        self._numbers = findings.numbers
        self._links = findings.gathered.links if findings.gathered else []
        self._entities = findings.gathered.entities if findings.gathered else []
        self._parents = findings.gathered.parents if findings.gathered else []

    def passages_of_evidence(self, passage_ids: Iterable[str]) -> set[str]:
        """The passages whose chunks carry the evidence of these passages' paths."""
        view = self._view
        needed: set[int] = set()
        for passage_id in passage_ids:
            reason = self._reasons.get(passage_id)
            if reason is None:
                continue
            if reason.chunk >= 0:
                needed.add(view.passage_of_chunk(reason.chunk))
            if reason.term in _FROM_PARENT or reason.term == "matches":
                needed.add(self._parents[reason.parent].passage)
        return {view.passage_id(passage) for passage in needed}

    def path(self, passage_id: str, text: ChunkTexts, best_chunk: str) -> list[PathEdge]:
        """The path to a passage; empty for one that the graph did not reach.

        `text` gives the text of a chunk of the passages that `passages_of_evidence` named; `best_chunk` is the chunk
        the hit shows.
        """
        reason = self._reasons.get(passage_id)
        if reason is None:
            return []
        view = self._view
        title = view.title(view.document_of_passage(self._numbers[passage_id]))
        if reason.term == "names":
            return [self._names(self._links[reason.parent], title)]
        if reason.term == "mentioned_in":
            entity = self._entities[reason.parent]
            label = view.labels([entity.entity]).get(entity.entity, entity.surface)
            evidence = PathEdge(source=QUESTION, edge="names", target=label, evidence=self._question.text)
            return [evidence, self._step(label, "mentioned_in", title, reason.chunk, entity.entity, text)]
        parent = self._parents[reason.parent]
        parent_title = view.title(parent.document)
        first = self._to_parent(parent, parent_title, text)
        if reason.term == "matches":
            return [first]
        if reason.term == "continues":
            evidence_text = text(best_chunk)
            sentence = None if evidence_text is None else self._telling(evidence_text)
            last = PathEdge(source=parent_title, edge="continues", target=title, evidence=sentence, chunk_id=best_chunk)
            return [first, last]
        if reason.term == "shares":
            label = view.labels([reason.entity]).get(reason.entity, "")
            chunk = parent.entities[reason.entity].chunk
            return [
                first,
                self._step(parent_title, "mentions", label, chunk, reason.entity, text),
                self._step(label, "mentioned_in", title, reason.chunk, reason.entity, text),
            ]
        if reason.term == "states":
            return [first, *self._statement(parent_title, title, passage_id, reason, text)]
        return [first, self._step(parent_title, reason.term, title, reason.chunk, reason.entity, text)]

    def _names(self, link: QueryLink, title: str) -> PathEdge:
        return PathEdge(source=QUESTION, edge="names", target=title, evidence=link.surface)

    def _to_parent(self, parent: Parent, title: str, text: ChunkTexts) -> PathEdge:
        if parent.link is not None:
            return self._names(parent.link, title)
        best = parent.best_sentences(1)
        evidence = best[0].text[:MAX_EVIDENCE_CHARACTERS] if best else None
        holding = None
        for chunk in self._view.chunks_of_passage(parent.passage):
            identifier = self._view.chunk_id(chunk)
            if evidence is not None and evidence in (text(identifier) or ""):
                holding = identifier
                break
        return PathEdge(source=QUESTION, edge="matches", target=title, evidence=evidence, chunk_id=holding)

    def _statement(
        self, parent_title: str, title: str, passage_id: str, reason: Reason, text: ChunkTexts
    ) -> list[PathEdge]:
        label = self._view.labels([reason.entity]).get(reason.entity, "")
        predicate = reason.label or "states"
        stated = self._step(parent_title, predicate, label, reason.chunk, reason.entity, text)
        stating = self._view.passage_id(self._view.passage_of_chunk(reason.chunk))
        if stating == passage_id or normalise_text(label) == normalise_text(title):
            return [stated]
        return [stated, PathEdge(source=label, edge="title_of", target=title)]

    def _step(self, source: str, edge: str, target: str, chunk: int, entity: int, text: ChunkTexts) -> PathEdge:
        """A step whose evidence is the sentence of the chunk that names the entity, else its most telling one."""
        identifier = self._view.chunk_id(chunk)
        content = text(identifier)
        evidence = None
        if content is not None:
            name = self._view.entity_names([entity]).get(entity, ("", ""))[1] if entity else ""
            evidence = sentence_naming(content, name) or self._telling(content)
        return PathEdge(source=source, edge=edge, target=target, evidence=evidence, chunk_id=identifier)

    def _telling(self, text: str) -> str | None:
        """The sentence that holds most of the question's words; the first of equal ones."""
        sentences = [text[start:end] for start, end in sentence_spans(text)]
        best = max(sentences, key=lambda sentence: len(self._question.stems_in(sentence)), default=None)
        return None if best is None else best[:MAX_EVIDENCE_CHARACTERS]


def sentence_naming(text: str, name: str) -> str | None:
    """The first sentence of the text that holds the normalised name as whole words."""
    if not name:
        return None
    for start, end in sentence_spans(text):
        if f" {name} " in f" {normalise_text(text[start:end])} ":
            return text[start:end][:MAX_EVIDENCE_CHARACTERS]
    return None
