"""The request of a search: its parameters, their limits and choices."""

from typing import Annotated, Any, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from schemas.answers import FURTHER_WORDS, MOST_SENTENCES, MOST_WORDS, SENTENCES, WORDS, AnswerForm
from schemas.choices import Channel, Context, Duplicates, Edge, Fusion, GraphMethod, Intent, Mode
from schemas.filters import MAX_FILTER_CHARACTERS, MAX_FILTERS, MAX_HITS, Condition, Group, parse_condition
from schemas.receipts import TOKEN_PATTERN

RERANKED_MODES: frozenset[Mode] = frozenset({"hybrid", "vector", "keyword", "graph"})
MAX_QUERY_CHARACTERS = 10_000
MAX_NAMES = 16
MAX_HOPS = 2
MAX_OFFSET = 10_000
MAX_CONTEXT_CHUNKS = 10
DUPLICATE_THRESHOLD = 0.95
CONTEXT_CHUNKS = 2
MAX_PER_VALUE = 2


def _checked_filter(text: str) -> str:
    parse_condition(text)
    return text


Filter = Annotated[str, StringConstraints(max_length=MAX_FILTER_CHARACTERS), AfterValidator(_checked_filter)]


def split_list(value: object) -> object:
    """`a,b` as well as a list; repeated parameters may hold commas too. Of very many, the rest stays unsplit and is
    refused as one."""
    given = [value] if isinstance(value, str) else value
    if isinstance(given, list | tuple) and all(isinstance(each, str) for each in given):
        return tuple(name.strip() for each in given for name in each.split(",", MAX_NAMES))
    return value


FieldName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_FILTER_CHARACTERS)]
EdgeName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Weight = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]


def reject_boolean(value: object) -> object:
    """Raises ValueError for true and false, which Python takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"give a number; {str(value).lower()} is none")  # noqa: TRY004 -- what pydantic makes a 422 of
    return value


Count = Annotated[int, BeforeValidator(reject_boolean)]


class StrictNumbers(BaseModel):
    """A model whose numbers may be text, as in a query string, but not booleans."""

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_numbers(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, bool):
            return value
        kinds = _kinds(cls.model_fields[str(info.field_name)].annotation)
        return reject_boolean(value) if {int, float} & kinds and bool not in kinds else value


def _kinds(annotation: Any) -> set[Any]:
    """A type and all its arguments."""
    return {annotation}.union(*(_kinds(argument) for argument in get_args(annotation)))


class SearchRequest(StrictNumbers):
    """What to search for, where, and how fresh the answer must be."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"q": "Who wrote the proposal that replaced PEP 102?", "k": 5}]},
    )

    q: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARACTERS)] = Field(
        description="The question, in plain words."
    )
    k: int = Field(10, ge=1, le=MAX_HITS, description="Hits per page.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Hits to pass over: the `next_offset` of the page before.")
    collection: str | None = Field(None, max_length=128, description="Search this collection only; all when left out.")
    filter: Annotated[tuple[Filter, ...], Field(max_length=MAX_FILTERS)] = Field(
        (),
        description="Only documents that all of these let through: `field=value`, `field=a|b`, `!=`, `<`, `<=`, `>`, "
        "`>=`. Fields are those of the metadata (`author.name` for nested ones) and `document`, `title`, "
        "`content_type`, `uri`, `updated`, `version`; one that both have means either, `metadata.version` the "
        "metadata's. Dates are as long as written: `updated>=2026`.",
        examples=[["status=Final|Active", "created>=2001-01"]],
    )
    edges: Annotated[tuple[EdgeName, ...], BeforeValidator(split_list), Field(max_length=MAX_NAMES)] = Field(
        (),
        description="What the graph channel may follow, with commas between; all when left out: the kinds "
        f"{', '.join(get_args(Edge))} (the last three by `graph_method=expansion` alone), and predicates of statements "
        "and relations (`is_a`).",
        examples=[["link", "requires"]],
    )
    graph_method: GraphMethod = Field(
        "hop",
        description="How the graph channel continues from its seed passages: one bounded hop (`hop`), two steps both "
        "ways (`expansion`), a personalised PageRank (`pagerank`).",
    )
    mode: Mode = Field(
        "hybrid",
        description="All channels fused, or one alone; `graph_rerank` orders what the vector channel finds by the "
        "graph; `global` answers questions about a whole collection, or all of a topic, by its communities. Left out, "
        "`hybrid`, or `global` for a question of the intent `global`, and for a summary of nothing that has a name.",
    )
    channels: Annotated[tuple[Channel, ...], BeforeValidator(split_list)] = Field(
        (), description="What `hybrid` asks, with commas between; all four when left out.", examples=["vector,keyword"]
    )
    fusion: Fusion = Field(
        "adaptive",
        description="How `hybrid` fuses: by scores, as they are (`adaptive`); by ranks (`rrf`); by weighted min-max of "
        "the scores (`weighted`).",
    )
    vector_weight: Weight | None = Field(None, description="What the vector channel counts in `weighted`; .7.")
    keyword_weight: Weight | None = Field(None, description="What the keyword channel counts in `weighted`; .3.")
    graph_weight: Weight | None = Field(None, description="Weight of the graph channel; 1.")
    reranker: bool | None = Field(
        None,
        description="Whether a model that reads the question with each of the first hits puts these into another "
        "order, in the modes hybrid, vector, keyword and graph. Left out: where the service has one.",
    )
    intent: Intent | None = Field(None, description="What kind of question it is; classified by rules when left out.")
    names: (
        Annotated[tuple[Annotated[str, StringConstraints(max_length=200)], ...], Field(max_length=MAX_NAMES)] | None
    ) = Field(
        None,
        description="What the question names, each a title or an entity, in place of what is read from it; an empty "
        "one for nothing.",
        examples=[["Ada Lovelace"]],
    )
    hops: int | None = Field(
        None,
        ge=1,
        le=MAX_HOPS,
        description="How many steps `graph_method=expansion` goes; 1 where something is to be explained, else 2.",
    )
    decompose: bool = Field(
        False,
        description="Search each part of a question that compares two things or has several sentences separately, and "
        "merge what is found by rank. A question of one piece is searched as usual.",
    )
    group: Group = Field(
        "passage",
        description="One hit for each parent passage, chunk, or document (its best passage, and the next two of it in "
        "`passages`). With `duplicates=exact`, `document` gives one card a document, as a page for people shows them.",
    )
    max_per_document: int | None = Field(None, ge=1, le=MAX_HITS, description="Hits of one document; any number.")
    diversity: FieldName | None = Field(
        None,
        description="A field, named as in `filter`: of hits whose documents have a value of it in common, only the "
        "first `max_per_value` stay. Documents without the field are not limited.",
        examples=["author"],
    )
    max_per_value: int | None = Field(
        None, ge=1, le=MAX_HITS, description=f"Hits of one value of the field in `diversity`; {MAX_PER_VALUE}."
    )
    sort: FieldName | None = Field(
        None,
        description="A field, named as in `filter`, by which the first 1,000 places are ordered, downwards with a `-` "
        "before it: dates and numbers by size, all else as text. Without a value is last, what is equal by relevance.",
        examples=["-published"],
    )
    facets: Annotated[tuple[FieldName, ...], BeforeValidator(split_list), Field(max_length=MAX_NAMES)] = Field(
        (),
        description="Fields, with commas between, whose values are counted: over the documents that hold a word of the "
        "question or are among the first candidates of another channel, within collection, filters and phrases.",
        examples=["status"],
    )
    duplicates: Duplicates = Field(
        "keep",
        description="What becomes of hits with the content of an earlier one: `exact` leaves out those with the same "
        "text, with `group=document` those whose documents have the same text from beginning to end; `semantic` also "
        "those whose best chunks are similar. The one that stays lists them in `duplicates`.",
    )
    duplicate_threshold: float | None = Field(
        None,
        ge=0.5,
        le=1,
        description=f"The cosine from which chunks are similar, for `semantic`; {DUPLICATE_THRESHOLD}.",
    )
    min_confidence: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Leave out hits that are less likely relevant. No more than the first 64 are then shown.",
    )
    context: Context = Field(
        "parent",
        description="What is shown around the matching chunk: its passage (`parent_text`), or in `context_text` a "
        "`window` of the chunks before and after, or the `section` it is in.",
    )
    context_chunks: int | None = Field(
        None, ge=1, le=MAX_CONTEXT_CHUNKS, description=f"Chunks on either side, for `window`; {CONTEXT_CHUNKS}."
    )
    explain: bool = Field(False, description="Return each hit's `factors`, `entities` and `statements`.")
    answer: bool = Field(
        False, description="Return an answer too, made of sentences of the first hits, each with its source."
    )
    answer_form: AnswerForm = Field(
        "extract",
        description="Sentences of the hits, word for word (`extract`), or written by the language model that the "
        "service has (`model`), as far as sentences of the hits support them.",
    )
    answer_sentences: int | None = Field(
        None, ge=1, le=MOST_SENTENCES, description=f"The most sentences of the answer; {SENTENCES}."
    )
    answer_words: int | None = Field(
        None,
        ge=10,
        le=MOST_WORDS,
        description=f"The most words of the answer, without titles; {WORDS}, and {FURTHER_WORDS} for each sentence "
        f"above {SENTENCES}.",
    )
    subgraph: bool = Field(False, description="Return what the question and its hits are about, and how it is joined.")
    after: str | None = Field(
        None,
        max_length=4096,
        description="A token from a write: the answer includes it, or a 503 reports that it is not indexed.",
        examples=["3:1042"],
        json_schema_extra={"pattern": TOKEN_PATTERN},
    )
    wait_seconds: float = Field(10.0, ge=0, le=60, description="How long to wait for `after`.")
    cursor: str | None = Field(
        None,
        max_length=512,
        description="The `next_cursor` of the page before, with the same question: the next page, from the same "
        "snapshot, in place of `offset`.",
    )
    cache: bool = Field(True, description="May be answered from the cache of results, which knows the snapshot.")

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        """Whatever the fusion: weights that are all zero are not replaced by defaults."""
        weights = {"vector": self.vector_weight, "keyword": self.keyword_weight, "graph": self.graph_weight}
        asked = self.channels if self.mode == "hybrid" and self.channels else tuple(weights)
        weighed = [channel for channel in weights if channel in asked]
        if not weighed or any(weights[channel] != 0 for channel in weighed):
            return self
        if len(weighed) == len(weights):
            raise ValueError("All weights are 0; give at least one channel a weight above 0.")
        raise ValueError(
            f"Nothing is left to order hits by: of the channels asked, {' and '.join(weighed)} "
            f"{'has' if len(weighed) == 1 else 'have'} the weight 0. Give one a weight above 0, or ask another channel."
        )

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        if self.duplicate_threshold is not None and self.duplicates != "semantic":
            raise ValueError("`duplicate_threshold` is for duplicates=semantic: ask for that too, or leave it out.")
        if self.context_chunks is not None and self.context != "window":
            raise ValueError("`context_chunks` is for context=window: ask for that too, or leave it out.")
        if self.group == "document" and (self.max_per_document or 1) > 1:
            raise ValueError("group=document gives one hit a document; `max_per_document` is for passages and chunks.")
        if self.hops is not None and self.graph_method != "expansion":
            raise ValueError("`hops` is for graph_method=expansion: ask for that too, or leave it out.")
        if self.decompose and self.group == "chunk":
            raise ValueError("`decompose` merges passages or documents; leave it out, or group=chunk.")
        if self.max_per_value is not None and self.diversity is None:
            raise ValueError("`max_per_value` is for the field named in `diversity`: give that too, or leave it out.")
        return self

    @model_validator(mode="after")
    def _answers_are_of_first_pages(self) -> Self:
        if self.answer and (self.offset or self.cursor is not None):
            raise ValueError("An answer is made of the first hits: leave `answer` out on further pages.")
        asked = self.answer_form != "extract" or self.answer_sentences is not None or self.answer_words is not None
        if asked and not self.answer:
            raise ValueError(
                "`answer_form`, `answer_sentences` and `answer_words` are for answer=true: ask for that too."
            )
        return self

    @model_validator(mode="after")
    def _options_fit_the_mode(self) -> Self:
        if self.names is not None and self.mode in ("vector", "keyword", "structured", "global"):
            raise ValueError(
                f"`names` are for modes that ask the graph, and mode={self.mode} does not: leave them out."
            )
        if self.reranker and self.mode not in RERANKED_MODES:
            raise ValueError("A re-ranker is for hybrid, vector, keyword and graph; leave `reranker` out elsewhere.")
        if self.reranker and self.sort is not None:
            raise ValueError("A re-ranker orders hits, and so does `sort`: leave one of them out.")
        if self.min_confidence is not None and self.mode in ("structured", "global"):
            raise ValueError(f"mode={self.mode} has no confidence, so no `min_confidence`; leave one of them out.")
        if self.decompose and self.mode == "global":
            raise ValueError("mode=global searches a question as a whole; leave `decompose` out.")
        return self

    @property
    def needs_vector(self) -> bool:
        """Whether the question is to be embedded."""
        if self.mode == "hybrid":
            return not self.channels or "vector" in self.channels
        return self.mode not in ("keyword", "structured")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(map(parse_condition, self.filter))
