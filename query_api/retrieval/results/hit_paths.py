"""A hit's path: from the question, over what it names or what fits it, to the passage; each step with its evidence.

It ends at the hit's document, comes by no document or entity twice but for steps between passages of one document, and
goes by another document only where the question names that one, or it fits the question better than the hit does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from query_api.index.graph.hand_made_relations import End
from query_api.index.graph.view import GraphView
from query_api.query.analysis import Question, analysed_question, normalise_text
from query_api.query.entity_linking import QueryLink
from query_api.query.evidence_sentences import sentence_naming, sentence_of_fact, sentences_of, written_in
from query_api.retrieval.retrievers.graph_edges import Reason, Seed
from query_api.retrieval.retrievers.graph_scoring import GraphResults
from query_api.retrieval.retrievers.graph_seeds import residual_query
from query_api.retrieval.retrievers.relation_walks import RelationStep, note_of
from schemas.hits import PathEdge, StepBy
from schemas.ids import entity_id

MAX_EVIDENCE_CHARACTERS = 500
WITHIN_DOCUMENT = {"next_chunk": "next_to", "similar_to": "similar_text", "related_to": "similar_text"}
SHOWN_AS = {**WITHIN_DOCUMENT, "similar_across": "similar_text"}
OF_THE_QUESTION = ("names", "mentioned")  # reasons that need no seed
_HYPHENS = str.maketrans(dict.fromkeys("-\u2010\u2011\u2013", " "))

ChunkTexts = Callable[[str], str | None]


class PathEnd(NamedTuple):
    """What a step leads from or to: a name to show, and the id of the document or entity in the graph."""

    name: str
    node: str | None


QUESTION = PathEnd("question", None)


class PathBuilder:
    """The ways one search took through the graph."""

    def __init__(
        self, question: Question, view: GraphView, results: GraphResults, matches: Mapping[str, Sequence[str]]
    ) -> None:
        """`matches` are what passages' documents have of what the question asks of fields, as hits have them."""
        self._matches = matches
        self._question = question
        self._view = view
        self._reasons = results.reasons
        self._numbers = results.numbers
        self._links = results.seed_set.links if results.seed_set else []
        self._seeds = results.seed_set.seeds if results.seed_set else []
        self._seed_of = {seed.passage: at for at, seed in enumerate(self._seeds) if seed.reached is None}
        self._names: dict[int, str] = {}
        self._labels: dict[int, str] = {}
        self._entity_ids: dict[int, str] = {}

    def evidence_passages(self, passage_ids: Iterable[str]) -> set[str]:
        """The passages whose chunks carry the evidence of these passages' paths; what the paths name is looked up."""
        needed: set[int] = set()
        named: set[int] = set()
        reasons = [self._reason(passage_id) for passage_id in passage_ids]
        for reason in (step for last in reasons if last is not None for step in self._steps_to(last)):
            if reason.entity:
                named.add(reason.entity)
            named.update(step.end.at for step in reason.over if step.end.kind == "entity")
            if reason.chunk >= 0:
                needed.add(self._view.passage_of_chunk(reason.chunk))
            if reason.term not in OF_THE_QUESTION:
                needed.add(self._seeds[reason.origin].passage)
        self._look_up(named)
        return {self._view.passage_id(passage) for passage in needed}

    def _look_up(self, entities: Iterable[int]) -> None:
        unknown = [entity for entity in entities if entity not in self._names]
        if unknown:
            known = self._view.entity_names(unknown)
            names = {entity: name for entity, (_, name) in known.items()}
            self._entity_ids |= {entity: entity_id(*name) for entity, name in known.items()}
            self._labels |= self._view.labels(names)
            self._names |= dict.fromkeys(unknown, "") | names

    def _steps_to(self, last: Reason) -> Iterator[Reason]:
        """The last step to a passage, and those to the seeds before it."""
        step: Reason | None = last
        while step is not None:
            yield step
            step = None if step.term in OF_THE_QUESTION else self._seeds[step.origin].reached

    def _reason(self, passage_id: str) -> Reason | None:
        """Why a passage was reached: from a seed that fits the question better than the passage itself does, or in
        another document that the question names; else because it fits itself."""
        reason = self._reasons.get(passage_id)
        own = None if reason is None else self._seed_of.get(self._numbers[passage_id])
        if reason is None or own is None:
            return reason
        *_, first = self._steps_to(reason)
        if first.term in OF_THE_QUESTION:
            return reason
        before = self._seeds[first.origin]
        named = before.link is not None and reason.term not in WITHIN_DOCUMENT
        if first.origin != own and (named or before.weight > self._seeds[own].weight):
            return reason
        return Reason("matches", own)

    def path(self, passage_id: str, text: ChunkTexts, best_chunk: str) -> list[PathEdge]:
        """The path to a passage; empty for one that the graph did not reach.

        `text` gives the text of a chunk of the passages that `evidence_passages` named; `best_chunk` is the chunk
        the hit shows.
        """
        reason = self._reason(passage_id)
        if reason is None:
            return []
        end = self._document(self._view.document_of_passage(self._numbers[passage_id]))
        for field, _, words in (match.partition("=") for match in self._matches.get(passage_id, ())):
            if field == "document":
                return [_edge(QUESTION, "names", end, words, by="question")]
        return without_loops(self._edges(passage_id, reason, end, text, best_chunk), end)

    def _document(self, document: int) -> PathEnd:
        return PathEnd(self._view.title(document), str(self._view.document_key(document)))

    def _edges(
        self, passage_id: str, reason: Reason, end: PathEnd, text: ChunkTexts, best_chunk: str
    ) -> list[PathEdge]:
        if reason.term == "names":
            return self._from_named(self._links[reason.origin], reason.over, end)
        if reason.term == "mentioned" and not reason.entity:
            evidence = _best_sentence(text(best_chunk) or "", self._question)
            return [_edge(QUESTION, "matches", end, evidence, best_chunk, by="question")]
        if reason.term == "mentioned":
            topic = self._entity(reason.entity, reason.chunk, text)
            step = self._step(topic, "mentioned_in", end, reason.chunk, reason.entity, text)
            return [_edge(QUESTION, "names", topic, topic.name, by="question"), step]
        seed = self._seeds[reason.origin]
        return [*self._way_to(seed, text), *self._from_seed(seed, end, passage_id, reason, text, best_chunk)]

    def _way_to(self, seed: Seed, text: ChunkTexts) -> list[PathEdge]:
        """From the question to a seed, by way of the seeds before it."""
        end = self._document(seed.document)
        if seed.reached is None and seed.link is not None:
            return self._from_named(seed.link, seed.over, end)
        if seed.reached is None:
            return [self._to_seed(seed, end, text)]
        before = self._seeds[seed.reached.origin]
        here = self._view.passage_id(seed.passage)
        return [*self._way_to(before, text), *self._from_seed(before, end, here, seed.reached, text, "")]

    def _to_seed(self, seed: Seed, end: PathEnd, text: ChunkTexts) -> PathEdge:
        """A sentence of the seed, else its title, holds words of the question."""
        chunks = [self._view.chunk_id(chunk) for chunk in self._view.chunks_of_passage(seed.passage)]
        for sentence in seed.best_sentences(len(seed.sentences)):
            for chunk in chunks if sentence.share > 0 else ():
                if sentence.text in (text(chunk) or ""):
                    return _edge(QUESTION, "matches", end, sentence.text, chunk, by="question")
        shares_words = self._question.stems_in(end.name)
        return _edge(QUESTION, "matches", end, end.name if shares_words else None, by="question")

    def _from_seed(
        self, seed: Seed, end: PathEnd, passage_id: str, reason: Reason, text: ChunkTexts, best_chunk: str
    ) -> list[PathEdge]:
        start = self._document(seed.document)
        match reason.term:
            case "matches":
                return []
            case "continues":
                residual = analysed_question(residual_query(self._question, seed, start.name))
                evidence = _best_sentence(text(best_chunk) or "", residual)
                if evidence is not None and not residual.stems_in(evidence):
                    evidence = None
                return [_edge(start, "continues", end, evidence, best_chunk, by="words")]
            case "shares":
                shared = self._entity(reason.entity, reason.chunk, text)
                chunk = seed.entities[reason.entity].chunk
                return [
                    self._step(start, "mentions", shared, chunk, reason.entity, text),
                    self._step(shared, "mentioned_in", end, reason.chunk, reason.entity, text),
                ]
            case "states":
                return self._stated(start, end, passage_id, reason, text)
            case "relation":
                return self._related(start, reason.over, end, reason, text)
        edge = SHOWN_AS.get(reason.term, reason.term)
        return [self._step(start, edge, end, reason.chunk, reason.entity, text)]

    def _stated(
        self, start: PathEnd, end: PathEnd, passage_id: str, reason: Reason, text: ChunkTexts
    ) -> list[PathEdge]:
        """The fact, and the document that states it or is about its other part unless that is its title. A fact of the
        metadata alone, such as a date in front matter, has no sentence."""
        other = self._entity(reason.entity, reason.chunk, text)
        chunk = self._view.chunk_id(reason.chunk)
        shown = text(chunk)
        evidence = None
        if shown is not None:
            names = normalise_text(start.name), normalise_text(other.name)
            facts = self._view.statements_in(np.array([self._view.passage_of_chunk(reason.chunk)]))
            is_stated = any(each.sentence >= 0 for each in facts if each.predicate == reason.predicate)
            evidence = sentence_of_fact(shown, reason.predicate, *names, is_stated=is_stated)
        fact = _edge(start, reason.predicate, other, evidence, chunk, inverse=reason.inverse)
        stating = self._view.passage_id(self._view.passage_of_chunk(reason.chunk))
        if stating == passage_id:
            return [fact, _edge(other, "mentioned_in", end, evidence, chunk)]
        return [fact, _edge(other, "title_of", end)]

    def _from_named(self, link: QueryLink, over: Sequence[RelationStep], end: PathEnd) -> list[PathEdge]:
        """From the question to a document that it names, or over relations from there."""
        if not over:
            return [_named(link, end)]
        start = self._document(link.document)
        return [_named(link, start), *self._related(start, over, end)]

    def _related(
        self,
        start: PathEnd,
        over: Sequence[RelationStep],
        end: PathEnd,
        reason: Reason | None = None,
        text: ChunkTexts = lambda _: None,
    ) -> list[PathEdge]:
        """A step for each relation, with its note; and from an entity to a document about it, or that mentions it."""
        edges: list[PathEdge] = []
        for step in over:
            target = self._end(step.end)
            if step.end.kind == "entity" and step is over[-1] and reason is not None and reason.chunk >= 0:
                target = self._entity(step.end.at, reason.chunk, text)
            edges.append(_edge(start, step.predicate, target, note_of(step), inverse=step.inverse))
            start = target
        if over[-1].end.kind == "entity" and reason is not None and reason.chunk >= 0:
            edges.append(self._step(start, "mentioned_in", end, reason.chunk, reason.entity, text))
        elif over[-1].end.kind == "entity":
            edges.append(_edge(start, "title_of", end))
        return edges

    def _end(self, end: End) -> PathEnd:
        if end.kind == "entity":
            self._look_up([end.at])
            return PathEnd(self._labels.get(end.at, self._names[end.at]), self._entity_ids.get(end.at))
        if end.kind == "chunk":
            return self._document(self._view.document_of_passage(self._view.passage_of_chunk(end.at)))
        return self._document(end.at)

    def _entity(self, entity: int, chunk: int, text: ChunkTexts) -> PathEnd:
        """The entity as the document about it writes it, else as the chunk does."""
        self._look_up([entity])
        name = self._names[entity]
        label = self._labels.get(entity, name)
        if label == name:
            label = written_in(text(self._view.chunk_id(chunk)) or "", name) or label
        return PathEnd(label, self._entity_ids.get(entity))

    def _step(self, source: PathEnd, edge: str, target: PathEnd, chunk: int, entity: int, text: ChunkTexts) -> PathEdge:
        """A step with its evidence: the sentence of the chunk that names the entity, of a link that with most words of
        the question."""
        identifier = self._view.chunk_id(chunk)
        shown = text(identifier)
        if shown is None:
            return _edge(source, edge, target, None, identifier)
        if entity:
            self._look_up([entity])
        name = self._names.get(entity, "")
        evidence = sentence_naming(shown, name) or _sentence_with(shown, name, self._question)
        return _edge(source, edge, target, evidence, identifier)


def without_loops(edges: Sequence[PathEdge], end: PathEnd) -> list[PathEdge]:
    """The edges without those between two visits of the same document or entity, by its name, but for steps within a
    document; the last leads to `end`. Hyphens make no other name: `Coleridge-Taylor` is `Coleridge Taylor`."""
    kept: list[PathEdge] = []
    reached: list[str | None] = [None]
    for edge in edges:
        target = normalise_text(edge.target.translate(_HYPHENS))
        if target in reached and not (edge.edge in WITHIN_DOCUMENT.values() and target == reached[-1]):
            del kept[reached.index(target) :], reached[reached.index(target) + 1 :]
        else:
            before = {"source": kept[-1].target, "source_node": kept[-1].target_node} if kept else {}
            kept.append(edge.model_copy(update=before))
            reached.append(target)
    if kept:
        kept[-1] = kept[-1].model_copy(update={"target": end.name, "target_node": end.node})
    return kept


def _best_sentence(text: str, question: Question) -> str | None:
    """The sentence that holds most of the question's words; the first of equal ones."""
    return max(sentences_of(text), key=lambda sentence: len(question.stems_in(sentence)), default=None)


def _sentence_with(text: str, name: str, question: Question) -> str | None:
    """The first sentence with all words of a name, in whatever order; without a name that which fits the question."""
    holding = (each for each in sentences_of(text) if all(word in normalise_text(each) for word in name.split()))
    return next(holding, None) if name else _best_sentence(text, question)


def _named(link: QueryLink, end: PathEnd) -> PathEdge:
    return _edge(QUESTION, "names", end, link.surface, by="question")


def _edge(
    source: PathEnd,
    edge: str,
    target: PathEnd,
    evidence: str | None = None,
    chunk_id: str | None = None,
    *,
    by: StepBy = "graph",
    inverse: bool = False,
) -> PathEdge:
    shortened = None if evidence is None else evidence[:MAX_EVIDENCE_CHARACTERS]
    return PathEdge(
        source=source.name,
        edge=edge,
        target=target.name,
        inverse=inverse,
        by=by,
        evidence=shortened,
        chunk_id=chunk_id,
        source_node=source.node,
        target_node=target.node,
    )
