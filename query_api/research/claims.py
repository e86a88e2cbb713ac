"""The check of a claim: what the graph states of its facts, and what sentences of hits say with its words.

Both have to be sure, since most paraphrases are rather left undecided. A statement supports a claim only where its
sentence, its title or its ends hold every name, number and time of the claim; something else excludes it only where the
passage does not hold what is claimed too.
"""

import re
from collections.abc import Iterator, Sequence

from indexer.chunking.sentences import sentence_spans
from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_facts import FactFinder
from query_api.index.search_snapshot import Snapshot
from query_api.query.analysis import normalise_text
from query_api.query.evidence_sentences import sentence_of_fact
from query_api.research.alignment import Line, fit, is_same, line_of
from query_api.research.stated_facts import ClaimedFact, Decision, StatedFacts, claimed_facts
from schemas.hits import Hit, SearchAnswer
from schemas.ids import DocumentKey, normalise_name
from schemas.research import ClaimCheck, ClaimEvidence, ClaimRequest, Verdict

MOST_EVIDENCE = 10
MOST_UNHELD = 1  # words of a claim, beside names and numbers, that the statement's sentence lacks
_ONE = re.compile(r"\b[Tt]he (?:\w+ ){0,2}\w*[^\Ws] of .+ (?:is|was) |['’]s (?:\w+ ){0,2}\w*[^\Ws] (?:is|was) ")
"""`the capital of X is`, `X's capital is`: one thing, by its grammar."""


def compared(
    asked: ClaimRequest,
    found: SearchAnswer,
    snapshot: Snapshot,
    catalogue: EntityCatalogue,
    describer: EntityDescriber,
    left_out: frozenset[DocumentKey],
) -> ClaimCheck:
    """Reads stores. Raises TransientStoreError."""
    stated = StatedFacts(snapshot.graph, catalogue, asked.collection, left_out)
    facts, claim = claimed_facts(asked.claim), line_of(asked.claim)
    evidence = [
        *_by_graph(facts, claim, stated, snapshot, describer),
        *_by_words(asked.claim, claim, facts, stated, found.hits),
    ]
    unique = {(each.document_id, each.collection, each.start, each.stance): each for each in reversed(evidence)}
    kept = [*reversed(unique.values())][:MOST_EVIDENCE]
    return ClaimCheck(
        claim=asked.claim,
        verdict=verdict_of(kept),
        evidence=kept,
        read_as=[str(fact) for fact in facts],
        retrieval_id=found.retrieval_id,
    )


def verdict_of(evidence: Sequence[ClaimEvidence]) -> Verdict:
    stances = {each.stance for each in evidence}
    if len(stances) != 1:
        return "ambiguous" if stances else "not_found"
    return "verified" if stances == {"supports"} else "contradicted"


def _by_graph(
    facts: Sequence[ClaimedFact], claim: Line, stated: StatedFacts, snapshot: Snapshot, describer: EntityDescriber
) -> Iterator[ClaimEvidence]:
    decisions = [decision for fact in facts for decision in stated.decisions(fact)]
    view, finder = snapshot.graph, FactFinder(snapshot.graph, stated.catalogue)
    chunks = snapshot.text.chunks({view.chunk_id(each.statement.chunk) for each in decisions})
    passages = snapshot.text.passages({view.passage_id(each.statement.passage) for each in decisions})
    for decision in decisions:
        statement = decision.statement
        chunk = chunks.get(view.chunk_id(statement.chunk))
        passage = passages.get(view.passage_id(statement.passage))
        if chunk is None or passage is None:
            continue
        parts = {part.name: part for part in statement.roles}
        ends = [normalise_name(parts[role].surface) for role in ("subject", "object")]
        is_sentence = statement.sentence >= 0
        sentence = sentence_of_fact(chunk.text, statement.predicate, *ends, is_stated=is_sentence) or chunk.text
        if not _is_sure(decision, claim, sentence, passage.title, passage.text):
            continue
        at = max(0, chunk.text.find(sentence))
        subject, described = (describer.reference(finder.end_of(parts[role])) for role in ("subject", "object"))
        yield ClaimEvidence(
            stance="supports" if decision.supports else "contradicts",
            by="graph",
            claimed=decision.claimed,
            stated=decision.stated,
            predicate=statement.predicate,
            subject=subject,
            object=described,
            denied=decision.denied,
            text=sentence,
            title=passage.title,
            document_id=passage.key.document_id,
            collection=passage.key.collection,
            chunk_id=chunk.id,
            start=chunk.start + at,
            end=chunk.start + at + len(sentence),
        )


def _is_sure(decision: Decision, claim: Line, sentence: str, title: str, passage: str) -> bool:
    if decision.claimed:
        return f" {normalise_text(decision.claimed)} " not in f" {normalise_text(f'{title} {passage}')} "
    ends = [part.surface for part in decision.statement.roles]
    held = [unit for text in (sentence, title, *ends) for unit in line_of(text).units]
    text = f" {normalise_text(' '.join((sentence, title, *ends)))} "
    unheld = [
        unit
        for unit in claim.units
        if f" {normalise_text(unit.text)} " not in text and not any(is_same(unit, each) for each in held)
    ]
    words = [unit for unit in unheld if unit.kind == "word" and unit.text.lower() not in decision.fact.predicate]
    return all(unit.kind == "word" for unit in unheld) and len(words) <= MOST_UNHELD


def _by_words(
    text: str, claim: Line, facts: Sequence[ClaimedFact], stated: StatedFacts, hits: Sequence[Hit]
) -> Iterator[ClaimEvidence]:
    for hit in hits:
        for start, end in sentence_spans(hit.parent_text):
            found = fit(claim, hit.parent_text[start:end], hit.title)
            if found is None or (
                found.differs is not None and not _excludes(text, facts, stated, found.differs[0].text)
            ):
                continue
            claimed, other = ("", "") if found.differs is None else (each.text for each in found.differs)
            if claimed and f" {normalise_text(claimed)} " in f" {normalise_text(f'{hit.title} {hit.parent_text}')} ":
                continue
            yield ClaimEvidence(
                stance="supports" if not claimed and not found.opposite else "contradicts",
                by="words",
                claimed=claimed,
                stated=other,
                denied=found.opposite,
                text=hit.parent_text[start:end],
                title=hit.title,
                document_id=hit.document_id,
                collection=hit.collection,
                chunk_id=hit.chunk_id,
                start=hit.parent_start + start,
                end=hit.parent_start + end,
            )


def _excludes(text: str, facts: Sequence[ClaimedFact], stated: StatedFacts, claimed: str) -> bool:
    """Whether another value in the place of this one excludes it: a number or a time does, in what is otherwise said
    with the same words; a name where the relation has one."""
    if any(map(str.isdigit, claimed)):
        return True
    if _ONE.search(text) and text.rstrip(" .").endswith(claimed):
        return True
    return any(
        stated.has_one(fact.predicate, "subject" if claimed == fact.object else "object")
        for fact in facts
        if claimed in (fact.subject, fact.object)
    )
