"""An answer made of what a search found: its text, its sentences and their sources, whole or as frames."""

from typing import Literal

from pydantic import BaseModel, Field

AnswerForm = Literal["extract", "model"]
MOST_SENTENCES = 10
MOST_WORDS = 500
SENTENCES = 3
WORDS = 65
MOST_CONCEPTS = 8
FURTHER_WORDS = 40  # for each sentence above so many


class Citation(BaseModel):
    """The source of a sentence of an answer, which has it word for word, or says the same."""

    number: int = Field(description="As the answer's text has it in brackets, from 1.")
    text: str = Field(description="The sentence, word for word.")
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


class TokenUsage(BaseModel):
    """What a language model read and wrote for an answer, as its endpoint counts it; 0 where it counts nothing."""

    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class Summary(BaseModel):
    """A summary with its sources, as an answer has them."""

    form: AnswerForm = Field("extract", description="As of an answer.")
    text: str = Field(description="A line for each sentence, as of an answer; empty where nothing can be summarised.")
    citations: list[Citation] = Field(default_factory=list)
    made_at: str | None = Field(None, description="RFC 3339 time at which a language model wrote it.")
    dropped: int = Field(0, description="As of an answer.")
    usage: TokenUsage | None = Field(None, description="What the language model took for it, when it wrote it.")
    notes: list[str] = Field(default_factory=list, description="What went wrong, or was left out.")


class Answer(BaseModel):
    """What was found that answers the question, or that nothing does."""

    form: AnswerForm = Field(
        "extract",
        description="`extract`: sentences of the hits, word for word, chosen without a language model. `model`: "
        "sentences that a language model wrote, each of which sentences of the hits support.",
    )
    text: str = Field(
        description="A line for each sentence, with the numbers of its sources in brackets; of an extract with the "
        "title of its document, unless the line before has it. Empty where it is refused."
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
    dropped: int = Field(
        0, description="Sentences that the language model wrote and that no cited hit supports: they are left out."
    )
    usage: TokenUsage | None = Field(None, description="Where a language model was asked.")
