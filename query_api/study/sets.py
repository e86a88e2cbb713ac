"""The content of a study set of each kind; a pure function of one snapshot and what is asked for."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from indexer.text_analysis import query_terms
from query_api.study.cloze import Cloze, clozes
from query_api.study.concept_map import grown, mermaid, relations_among
from query_api.study.learning_path import in_order, needed_for, orders_of
from query_api.study.material import StudyMaterial
from query_api.study.questions import BLANK, QuestionMaker
from schemas.choices import StudyKind
from schemas.study import LearningStep, StepReason, StudyContent, StudyQuestion

T = TypeVar("T")

A_CONCEPT = 2  # questions
LOOKED_AT = 40  # of the best items, for each that is wanted
UNITS: dict[StudyKind, str] = {"cards": "cards", "quiz": "questions", "map": "concepts", "path": "concepts"}
WANTED: dict[StudyKind, str] = {
    "cards": "a card needs a sentence that states a fact without those around it",
    "quiz": "a question needs a sentence that states a fact, and three other names that are wrong for certain",
    "map": "a map needs facts between concepts",
    "path": "a path needs facts that say what a concept requires, or is a kind or a part of",
}


def make_content(material: StudyMaterial, kind: StudyKind, count: int) -> StudyContent:
    """Of at most `count` cards, questions or concepts; fewer, with a note, where nothing more makes a good one."""
    made = {"cards": _cards, "quiz": _quiz, "map": _map, "path": _path}[kind](material, count)
    if made.total < count:
        made.notes.append(f"{made.total} of the {count} {UNITS[kind]} asked for: {WANTED[kind]}.")
    return made


def _cards(material: StudyMaterial, count: int) -> StudyContent:
    chosen = _chosen(clozes(material), count, 1, lambda cloze: cloze)
    questions = [_shown(material, cloze, cloze.with_blank(BLANK), [], cloze.answer) for cloze in chosen]
    return StudyContent(questions=_numbered(questions))


def _quiz(material: StudyMaterial, count: int) -> StudyContent:
    chosen = _chosen(clozes(material), count, A_CONCEPT, QuestionMaker(material).question)
    questions = [_shown(material, each.cloze, each.text, each.options, each.answer) for each in chosen]
    return StudyContent(questions=_numbered(questions))


def _chosen(found: Sequence[Cloze], count: int, a_concept: int, made: Callable[[Cloze], T | None]) -> list[T]:
    """What is made of the best, each sentence and answer once: first so many of a concept and of a document, then so
    many of a concept, then what is left."""
    chosen: list[T] = []
    concepts, documents, used = Counter[int](), Counter[object](), set[str]()
    for most_of_document, most_of_concept in ((a_concept, a_concept), (count, a_concept), (count, count)):
        for cloze in found[: LOOKED_AT * count]:
            key = cloze.sentence.chunk.key
            if documents[key] >= most_of_document or concepts[cloze.concept] >= most_of_concept:
                continue
            if len(chosen) == count or used & {cloze.sentence.text, cloze.answer} or (new := made(cloze)) is None:
                continue
            chosen.append(new)
            concepts[cloze.concept] += 1
            documents[key] += 1
            used |= {cloze.sentence.text, cloze.answer}
    return chosen


def _shown(material: StudyMaterial, cloze: Cloze, text: str, options: list[str], answer: str) -> StudyQuestion:
    source = material.source(cloze.sentence)
    gives_away = set(query_terms(answer)) & set(query_terms(source.title))
    return StudyQuestion(
        question=0,
        text=text,
        context=None if gives_away else source.title,
        options=options,
        answer=answer,
        concept=material.reference(("entity", cloze.concept)),
        explanation=source,
    )


def _numbered(questions: Sequence[StudyQuestion]) -> list[StudyQuestion]:
    return [each.model_copy(update={"question": number}) for number, each in enumerate(questions, start=1)]


def _map(material: StudyMaterial, count: int) -> StudyContent:
    facts = material.between_concepts(material.facts)
    ends = grown(facts, material.worth, count, material.start)
    relations = relations_among(facts, ends)
    ends = [end for end in ends if any(end in {one.identity for one in fact.ends} for fact in relations)]
    concepts = [material.reference(end) for end in ends]
    edges = [
        (ends.index(fact.subject.identity), fact.predicate.replace("_", " "), ends.index(fact.object.identity))
        for fact in relations
    ]
    text = mermaid([each.label for each in concepts], edges) if relations else None
    return StudyContent(concepts=concepts, relations=material.describer.details(relations, 1), mermaid=text)


def _path(material: StudyMaterial, count: int) -> StudyContent:
    if material.start is None:
        orders = orders_of(filter(material.leads_on, material.between_concepts(material.facts)))
        ends = grown([order.fact for order in orders], material.worth, count, None)
    else:
        orders = orders_of(needed_for(material.start, material.facts_of, count))
        ends = list({end.identity: None for order in orders for end in order.fact.ends})
    orders = [order for order in orders if order.before in ends and order.after in ends]
    ends = [end for end in ends if any(end in (order.before, order.after) for order in orders)]
    path = in_order(sorted(ends, key=lambda end: (-material.worth(end), end)), orders)
    step_of = {end: step for step, end in enumerate(path, start=1)}
    steps = []
    for end, step in step_of.items():
        before = [order for order in orders if order.after == end]
        reasons = [
            StepReason(step=step_of[each.before], predicate=each.fact.predicate, evidence=material.evidence(each.fact))
            for each in before
        ]
        concept, definition = material.reference(end), material.definition(end)
        steps.append(LearningStep(step=step, concept=concept, definition=definition, after=reasons))
    return StudyContent(steps=steps)
