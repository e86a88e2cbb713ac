"""The answer to a search's question, made of its first hits, and its frames."""

import re
from collections.abc import Iterator, Sequence

from query_api.answers.document_fields import STATED, FieldLine, asked_line
from query_api.answers.extract import Extract, extract
from query_api.answers.sentences import NO_TEXTS, Sentence, TermIdf, Texts
from query_api.query.analysis import Question, analysed_question
from schemas.answers import FURTHER_WORDS, SENTENCES, WORDS, Answer, AnswerCitation, AnswerDelta, Citation
from schemas.hits import Hit
from schemas.search import SearchRequest

LEAST_CONFIDENCE = 0.34  # below which an answer is refused; see training/train_answers.py
MARKS = re.compile(r"(?: \[\d+\])+$")
_MOST_MISSING = 5  # words shown of those that nothing holds


def compose(request: SearchRequest, hits: Sequence[Hit], weights: TermIdf, texts: Texts = NO_TEXTS) -> Answer:
    """The line of a field that the question asks of a document, alone where it names that by a number: `Who created
    Hamlet?` may ask of what a document is about. Then, or else, sentences."""
    question = analysed_question(request.q)
    most, words = limits_of(request)
    line = asked_line(request.q, hits, texts.first_passage)
    if line is not None:
        most, words = most - 1, words - len(line.text.split())
        if line.is_alone or most < 1 or words < 1:
            return _answered([citation_of(1, line.hit, line)], STATED)
    found = extract(question, hits, weights, most_sentences=most, most_words=words, repeats=texts.repeats)
    confidence = None if found.confidence is None else round(found.confidence, 4)
    unlikely = not found.chosen or (confidence is not None and confidence < LEAST_CONFIDENCE)
    if line is not None:
        stated = citation_of(1, line.hit, line)
        further = [] if unlikely else [each for each in _citations(hits, found) if line.text not in each.text]
        further = [each.model_copy(update={"number": number}) for number, each in enumerate(further, start=2)]
        return _answered([stated, *further], max(STATED, confidence or 0.0))
    if not found.chosen:
        return Answer(text="", refused=True, reason="Nothing was found. Add documents about it, or search elsewhere.")
    if unlikely:
        return Answer(text="", confidence=confidence, refused=True, reason=_reason(question, found))
    return _answered(list(_citations(hits, found)), confidence)


def _answered(citations: list[Citation], confidence: float | None) -> Answer:
    lines = "".join(piece.text for piece in pieces(citations))
    return Answer(text=lines, citations=citations, confidence=confidence)


def limits_of(request: SearchRequest) -> tuple[int, int]:
    """The most sentences and words of an answer."""
    most = request.answer_sentences or SENTENCES
    return most, request.answer_words or WORDS + FURTHER_WORDS * max(0, most - SENTENCES)


def frames_of(answer: Answer | None) -> Iterator[AnswerCitation | AnswerDelta]:
    """Each source, before the first sentence from it."""
    if answer is None:
        return
    written = _written(answer.text) if answer.form == "model" else pieces(answer.citations)
    sources = {citation.number: citation for citation in answer.citations}
    for piece in written:
        for number in piece.citations:
            if (citation := sources.pop(number, None)) is not None:
                yield AnswerCitation(**citation.model_dump())
        yield piece


def citation_of(number: int, hit: Hit, sentence: Sentence | FieldLine) -> Citation:
    return Citation(
        number=number,
        text=sentence.text,
        title=hit.title,
        document_id=hit.document_id,
        collection=hit.collection,
        uri=hit.uri,
        chunk_id=hit.chunk_id,
        passage_id=hit.passage_id,
        hit=hit.rank,
        section=hit.section,
        page=hit.page,
        start=hit.parent_start + sentence.start,
        end=hit.parent_start + sentence.end,
    )


def _citations(hits: Sequence[Hit], found: Extract) -> Iterator[Citation]:
    for number, at in enumerate(found.chosen, start=1):
        sentence = found.sentences[at]
        yield citation_of(number, hits[sentence.hit], sentence)


def _written(text: str) -> Iterator[AnswerDelta]:
    """A line for each sentence, with its numbers at its end."""
    for index, line in enumerate(text.splitlines()):
        marks = MARKS.search(line)
        numbers = [] if marks is None else [int(number) for number in re.findall(r"\d+", marks[0])]
        yield AnswerDelta(index=index, text="\n" * (index > 0) + line, citations=numbers)


def pieces(citations: Sequence[Citation]) -> Iterator[AnswerDelta]:
    """A line for each sentence: the title where it is another than before, the sentence, its number."""
    before: tuple[str, str] | None = None
    for index, citation in enumerate(citations):
        document = (citation.collection, citation.document_id)
        title = f"*{citation.title or citation.document_id}*: " if document != before else ""
        before = document
        sentence = " ".join(citation.text.split())
        end = "\n" if index else ""
        yield AnswerDelta(index=index, text=f"{end}{title}{sentence} [{citation.number}]", citations=[citation.number])


def _reason(question: Question, found: Extract) -> str:
    """Why nothing answers, and what would be needed: the names and numbers of the question that no sentence found
    holds, else its words."""
    words = found.missing_words(question)
    names = [word for word in words if word[0].isupper() or any(map(str.isdigit, word))]
    missing = [f"“{word}”" for word in names or words][:_MOST_MISSING]
    if not missing:
        return "What was found has the question's words, but no sentence that is likely to answer it."
    return (
        f"Nothing that was found is likely to answer it: no passage among the first has {_listed(missing)}. A document "
        "that does would be needed; or ask in other words."
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
