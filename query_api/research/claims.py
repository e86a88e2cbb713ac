"""The check of a claim: what the graph states of its facts, and what sentences of hits say with its words.

Both have to be sure. A statement bears a claim out only where its sentence, title and ends hold every name, number and
time of the claim, and all but one of its words; another value excludes it only where the passage has not what is
claimed too.
"""

import re
from collections.abc import Iterator, Sequence

from indexer.chunking.sentences import sentence_spans
from indexer.extraction.prose.word_classes import DENIAL
from indexer.read.rows import PassageRow
from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.description import EVIDENCE_EACH, EntityDescriber
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.text_segments import Scope
from query_api.query.analysis import has_words, normalise_text
from query_api.research.alignment import fit, is_same, units_of
from query_api.research.claimed_fields import by_fields
from query_api.research.stated_facts import ClaimedFact, Decision, StatedFacts, claimed_facts
from schemas.hits import SearchAnswer
from schemas.ids import DocumentKey
from schemas.research import ClaimCheck, ClaimEvidence, ClaimRequest, Verdict

MOST_EVIDENCE = 10
MOST_UNHELD = 1  # words of a claim that a sentence which states it need not have
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
    stated, facts = StatedFacts(snapshot.graph, catalogue, asked.collection), claimed_facts(asked.claim)
    decisions = [decision for fact in facts for decision in stated.decisions(fact)]
    by_graph = _by_graph(asked.claim, decisions, snapshot, describer, left_out)
    by_line = _by_fields(asked, found, snapshot)
    evidence = [*by_graph, *by_line, *_by_words(asked.claim, facts, stated, found)]
    unique = {(each.collection, each.document_id, each.start, each.stance): each for each in reversed(evidence)}
    kept = [*reversed(unique.values())][:MOST_EVIDENCE]
    read_as = list(map(str, facts))
    retrieval_id = found.retrieval_id
    return ClaimCheck(verdict=verdict_of(kept), evidence=kept, read_as=read_as, retrieval_id=retrieval_id)


def verdict_of(evidence: Sequence[ClaimEvidence]) -> Verdict:
    match sorted({each.stance for each in evidence}):
        case ["supports"]:
            return "verified"
        case ["contradicts"]:
            return "contradicted"
        case stances:
            return "ambiguous" if stances else "not_found"


def _by_graph(
    claim: str,
    decisions: Sequence[Decision],
    snapshot: Snapshot,
    describer: EntityDescriber,
    left_out: frozenset[DocumentKey],
) -> Iterator[ClaimEvidence]:
    view = snapshot.graph
    ids = {view.passage_id(each.passage) for one in decisions for each in one.fact.statements[:EVIDENCE_EACH]}
    passages = snapshot.text.passages(ids)
    for decision in decisions:
        fact = decision.fact
        places = zip(fact.statements, describer.evidence(fact), strict=False)  # evidence is of the first alone
        for statement, source in places:
            passage = passages.get(view.passage_id(statement.passage))
            if passage is None or passage.key in left_out:
                continue
            sentence = source.sentence or passage.text
            if not _is_sure(decision, claim, sentence, passage):
                continue
            start = passage.start + max(0, passage.text.find(sentence))
            yield ClaimEvidence(
                stance="supports" if decision.supports else "contradicts",
                statement=f"{fact.subject.surface} · {fact.predicate} · {fact.object.surface}",
                claimed=decision.instead and decision.instead[0],
                stated=decision.instead and decision.instead[1],
                text=sentence,
                start=start,
                end=start + len(sentence),
                **source.model_dump(include={"title", "document_id", "collection", "chunk_id"}),
            )


def _is_sure(decision: Decision, claim: str, sentence: str, passage: PassageRow) -> bool:
    if decision.instead is not None:
        return not has_words(f"{passage.title} {passage.text}", normalise_text(decision.instead[0]))
    texts = [sentence, passage.title, *(end.surface for end in decision.fact.ends)]
    held = [unit for text in texts for unit in units_of(text)]
    unheld = [
        unit
        for unit in units_of(claim)
        if not has_words(" ".join(texts), normalise_text(unit.text)) and not any(is_same(unit, each) for each in held)
    ]
    words = [unit for unit in unheld if unit.text.lower() not in decision.fact.predicate]
    return all(unit.kind == "word" for unit in unheld) and len(words) <= MOST_UNHELD


def _by_fields(asked: ClaimRequest, found: SearchAnswer, snapshot: Snapshot) -> Iterator[ClaimEvidence]:
    documents = snapshot.text.fields
    live = documents.live(Scope(asked.collection))
    denied = len(DENIAL.findall(asked.claim)) % 2 == 1

    def fields_with(phrase: str) -> list[str]:
        return [each.field for each in documents.named_by([phrase], live)]

    for each in by_fields(asked.claim, found.hits, fields_with, snapshot.text.first_passage):
        line, supports = each.line, each.supports != denied
        yield ClaimEvidence(
            stance="supports" if supports else "contradicts",
            statement=f"{line.hit.title} · {line.field} · {each.stated}",
            claimed=None if each.supports else each.claimed,
            stated=None if each.supports else each.stated,
            text=line.text,
            start=line.hit.parent_start + line.start,
            end=line.hit.parent_start + line.end,
            **line.hit.model_dump(include={"title", "document_id", "collection", "chunk_id"}),
        )


def _by_words(
    claim: str, facts: Sequence[ClaimedFact], stated: StatedFacts, found: SearchAnswer
) -> Iterator[ClaimEvidence]:
    for hit in found.hits:
        passage = f"{hit.title} {hit.parent_text}"
        for start, end in sentence_spans(hit.parent_text):
            fitting = fit(claim, hit.parent_text[start:end], hit.title)
            instead = fitting and fitting.differs
            if fitting is None or (
                instead
                and (has_words(passage, normalise_text(instead[0])) or not _excludes(claim, *instead, facts, stated))
            ):
                continue
            yield ClaimEvidence(
                stance="contradicts" if instead or fitting.opposite else "supports",
                claimed=instead and instead[0],
                stated=instead and instead[1],
                text=hit.parent_text[start:end],
                start=hit.parent_start + start,
                end=hit.parent_start + end,
                **hit.model_dump(include={"title", "document_id", "collection", "chunk_id"}),
            )


def _excludes(claim: str, value: str, other: str, facts: Sequence[ClaimedFact], stated: StatedFacts) -> bool:
    """Whether the other value in the place of this excludes it: a number or a time among the same words, what `the …
    of … is` says, or an end of a relation that has one."""
    if any(map(str.isdigit, value)):
        return True
    is_the_one = _ONE.search(claim) is not None and claim.rstrip(" .").endswith(value)
    roles = [(each.predicate, "subject" if value == each.object else "object") for each in facts if value in each]
    return (is_the_one or any(stated.has_one(*role) for role in roles)) and stated.excludes(value, other)
