"""An answer made of what a search found: its text, its sentences and their sources, whole or as frames."""

from typing import Literal

from pydantic import BaseModel, Field

AnswerForm = Literal["extract"]
MOST_SENTENCES = 10
MOST_WORDS = 500
SENTENCES = 3
WORDS = 65
MOST_CONCEPTS = 8
FURTHER_WORDS = 40  # for each sentence above so many


class Citation(BaseModel):
    """The source of a sentence of an answer, which has it word for word."""

    number: int = Field(description="As the answer's text has it in brackets, from 1.")
    text: str = Field(description="The sentence.")
    title: str
    document_id: str
    collection: str
    uri: str | None = None
    chunk_id: str = Field(description="The chunk of the hit that it was found by.")
    passage_id: str
    hit: int = Field(description="The rank of that hit.")
    section: list[str] = Field(description="The headings above it, outermost first.")
    page: int | None = Field(None, description="The page of that hit, in a format with pages.")
    start: int = Field(
        description="Where it begins in the text that was read from its document, in Unicode characters."
    )
    end: int = Field(description="Where it ends, exclusive.")


class AnswerCitation(Citation):
    """Frame `answer.citation`: a source, before the first `answer.delta` that names its number."""


class AnswerDelta(BaseModel):
    """Frame `answer.delta`: the next piece of the answer's text; all of them behind each other are the text."""

    index: int = Field(description="Counts the pieces, from 0.")
    text: str
    citations: list[int] = Field(default_factory=list, description="The numbers of the sources of this piece.")


class RelatedConcept(BaseModel):
    """An entity to ask about next; its id is for `/v1/entities/{id}`."""

    id: str
    name: str
    type: str | None


class Answer(BaseModel):
    """What was found that answers the question, or that nothing does."""

    form: AnswerForm = Field(
        "extract", description="`extract`: sentences of the hits, word for word, chosen without a language model."
    )
    text: str = Field(
        description="A line for each sentence, with the title of its document unless the line before has it, and the "
        "number of its source in brackets. Empty where it is refused."
    )
    citations: list[Citation] = Field(default_factory=list)
    confidence: float | None = Field(
        None,
        description="How likely something that was found answers, from 0 to 1; null where that is unknown, as for hits "
        "without confidence.",
    )
    refused: bool = Field(False, description="Whether nothing that was found is likely enough to answer.")
    reason: str | None = Field(None, description="Where it is refused: why, and what would be needed.")
    query: str = Field("", description="What was searched for: a follow-up is completed by what it follows.")
    related_concepts: list[RelatedConcept] = Field(
        default_factory=list,
        description="What the cited passages are about besides the question, and what they join it with; "
        f"{MOST_CONCEPTS} at most.",
    )
