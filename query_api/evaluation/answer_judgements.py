"""What is judged of an answer, and how the scorer judges it: by the labels and by words, without a language model."""

from typing import Literal, NamedTuple

import msgspec

from indexer.chunking.sentences import sentence_spans
from indexer.text_analysis import query_terms, terms_of
from query_api.answers.answer import MARKS, frames_of
from query_api.answers.features import AskedFor
from query_api.answers.model.support import sources_of, supporting
from query_api.evaluation.answer_labels import AnswerLabels
from query_api.query.analysis import analysed_question
from schemas.answers import Answer, AnswerDelta, Citation
from schemas.hits import Hit

JudgedBy = Literal["scorer", "model"]


class Judgement(msgspec.Struct, frozen=True):
    """The verdicts on one answer that each of its figures is the share of; no figure where there are none.

    `context_precision`: of each passage, whether it is relevant; here the mean precision@k at those that are, 0 where
    none is (Manning, Raghavan and Schütze 2008, "Introduction to Information Retrieval", section 8.4, average
    precision; documentation of Ragas, "Context Precision").
    `context_recall`: of each statement of the expected answer, or relevant document, whether the passages hold it
    (documentation of Ragas, "Context Recall").
    `faithfulness`: of each sentence, whether the cited passages support it; `answer_relevance`: of each thing that the
    question asks for, whether the answer addresses it, right or wrong (Es et al. 2024, "RAGAs: Automated Evaluation of
    Retrieval Augmented Generation", section 3, which takes statements, and questions made from the answer).
    `citation_precision`: of each cited sentence, whether it is needed; `answer_coverage`: of each statement of the
    expected answer, whether the answer says it (after Gao et al. 2023, "Enabling Large Language Models to Generate Text
    with Citations", section 3, citation quality and correctness).
    """

    context_precision: list[bool]
    context_recall: list[bool]
    faithfulness: list[bool]
    citation_precision: list[bool]
    answer_coverage: list[bool]
    answer_relevance: list[bool]

    def figure(self, name: str) -> float | None:
        """From 0 to 1."""
        verdicts: list[bool] = getattr(self, name)
        if name == "context_precision":
            places = [k for k, is_relevant in enumerate(verdicts, start=1) if is_relevant]
            return sum(found / k for found, k in enumerate(places, start=1)) / max(len(places), 1)
        return sum(verdicts) / len(verdicts) if verdicts else None


class Asked(NamedTuple):
    """A question, the hits that it was answered from, the seconds with and without an answer, and how it is judged."""

    question: str
    labels: AnswerLabels
    hits: list[Hit]
    answer: Answer
    seconds: tuple[float, float] = (0.0, 0.0)
    judgement: Judgement | None = None

    @property
    def found(self) -> bool:
        """Whether all relevant documents are among the hits."""
        return bool(self.labels.relevant) and self.labels.relevant <= {hit.document_id for hit in self.hits}

    @property
    def sentences(self) -> list[tuple[str, list[Citation]]]:
        """Those of the answer, each with its sources."""
        if self.answer.form == "extract":
            return [(source.text, [source]) for source in self.answer.citations]
        sources = {source.number: source for source in self.answer.citations}
        pieces = [frame for frame in frames_of(self.answer) if isinstance(frame, AnswerDelta)]
        return [(MARKS.sub("", each.text).strip(), [sources[number] for number in each.citations]) for each in pieces]

    def needed(self) -> list[bool]:
        """Of each cited sentence, whether it is a labelled supporting fact (Yang et al. 2018, "HotpotQA")."""
        supports = self.labels.supports
        return [supports(of.document_id, of.title, self._place(of), of.text) for of in self.answer.citations]

    def verbatim(self) -> list[bool]:
        """Of each cited sentence, whether its hit has it where the citation says."""
        cited = [(each, self.hits[each.hit - 1]) for each in self.answer.citations]
        return [hit.parent_text.startswith(each.text, each.start - hit.parent_start) for each, hit in cited]

    def _place(self, source: Citation) -> int:
        """The number of the sentence in its document; below 0 in a later passage, where it is not known."""
        hit = self.hits[source.hit - 1]
        return -1 if hit.parent_start else sum(at < source.start for at, _ in sentence_spans(hit.parent_text))


def scored(asked: Asked) -> Judgement:
    """By the labels; and by words where a sentence is supported, as those of a language model are checked, and what is
    addressed: the question's content words and, if it wants one, the kind of its answer."""
    labels, documents = asked.labels, [hit.document_id for hit in asked.hits]
    return Judgement(
        context_precision=[document in labels.relevant for document in documents],
        context_recall=[document in documents for document in labels.relevant],
        faithfulness=_supported(asked),
        answer_relevance=_addressed(asked),
        citation_precision=asked.needed() if labels.needed else [],
        answer_coverage=[labels.answer_in(asked.answer.text)] if labels.answers else [],
    )


def _supported(asked: Asked) -> list[bool]:
    sources, verdicts = sources_of(asked.hits), []
    for text, citations in asked.sentences:
        cited = {each.hit - 1 for each in citations}
        is_quoted = any(text in asked.hits[at].parent_text for at in cited)
        verdicts.append(is_quoted or bool(supporting(text, [source for at in sorted(cited) for source in sources[at]])))
    return verdicts


def _addressed(asked: Asked) -> list[bool]:
    question, said = analysed_question(asked.question), " ".join(text for text, _ in asked.sentences)
    asked_for = AskedFor.by(question)
    held = frozenset(terms_of(" ".join([said, *(source.title for source in asked.answer.citations)])))
    words = [terms for word in dict.fromkeys(question.words) if (terms := query_terms(word))]
    kind = [] if asked_for.kind == "thing" else [asked_for.is_in(said)]
    return [not held.isdisjoint(terms) for terms in words] + kind
