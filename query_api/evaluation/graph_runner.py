"""The graph that the product extracts from labelled documents, measured: in this process, without service or store.

Each document takes the indexer's own way: parsed, chunked, its names and statements extracted. What is found is mapped
to the labelled text by its characters that are not blank, since a parser makes blanks its own.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import PreparedDocument
from indexer.embedding.encoder import PromptedEncoder
from indexer.extraction.entity_mentions import entity_occurrences
from indexer.extraction.mention_tagger import MentionTagger, tagger_for
from indexer.resolution.own_names import full_names
from query_api.evaluation.graph_metrics import (
    NOTHING,
    Agreement,
    BCubed,
    DocumentGraph,
    Pair,
    agreement_by,
    recalled_pairs,
)
from query_api.evaluation.labelled_graphs import LabelledGraph
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey, normalise_name
from schemas.progress_bars import Bars

if TYPE_CHECKING:
    from rich.console import Console

COLLECTION = "labelled"
LABELS = {"person": "PER", "organisation": "ORG", "place": "LOC", "time": "TIME", "number": "NUM"}
OTHER_LABEL = "MISC"


class FoundMention(NamedTuple):
    """`text[start:end]` of the labelled text names an entity of a type, in a chunk; `name` is normalised."""

    start: int
    end: int
    kind: str
    name: str
    chunk: int


Extract = Callable[[LabelledGraph, PreparedDocument], Sequence[FoundMention]]


@dataclass
class GraphFigures:
    """What was measured of one folder."""

    split: str
    documents: int = 0
    typed: Agreement = NOTHING
    spans: Agreement = NOTHING
    by_type: dict[str, Agreement] = field(default_factory=lambda: defaultdict(Agreement))
    by_domain: dict[str, Agreement] = field(default_factory=lambda: defaultdict(Agreement))
    entities: BCubed = field(default_factory=BCubed)
    pairs_joined: int = 0
    pairs: int = 0

    def report(self) -> dict[str, Any]:
        """As JSON. What the labels do not show is left out: types and entities of sentences by domain."""
        shown: dict[str, Any] = {"split": self.split, "documents": self.documents}
        if self.by_domain:
            domains = {domain: self.by_domain[domain].figures() for domain in sorted(self.by_domain)}
            shown["mention_span_f1"] = round(mean(each["f1"] for each in domains.values()), 6)  # of domains
            return shown | {"mention_span": self.spans.figures(), "by_domain": domains}
        return shown | {
            "mention_typed_f1": round(self.typed.f1, 6),
            "mention_span_f1": round(self.spans.f1, 6),
            "entity_b3_f1": round(self.entities.f1, 6),
            "relation_recall": round(self.pairs_joined / self.pairs, 6) if self.pairs else 0.0,
            "mention_typed": self.typed.figures(),
            "mention_span": self.spans.figures(),
            "by_type": {kind: self.by_type[kind].figures() for kind in sorted(self.by_type)},
            "entity_b3": self.entities.figures(),
            "relation": {"joined": self.pairs_joined, "labelled": self.pairs},
        }


def measure(split: str, graphs: Sequence[LabelledGraph], extract: Extract, bars: Bars) -> GraphFigures:
    """The figures of all documents together."""
    figures = GraphFigures(split)
    extracted = bars(f"Extract {split}", len(graphs))
    for graph in graphs:
        prepared = prepared_from(graph)
        _measure_one(figures, graph, prepared, extract(graph, prepared))
        extracted.advance()
    return figures


def prepared_from(graph: LabelledGraph) -> PreparedDocument:
    """The labelled document as the indexer prepares one of plain text."""
    upsert = DocumentUpsert(
        key=DocumentKey(COLLECTION, graph.id),
        content=graph.text.encode(),
        content_type="text/plain",
        title=graph.title or None,
    )
    return prepare(upsert, ChunkingParameters())


def rule_mentions(graph: LabelledGraph, prepared: PreparedDocument) -> list[FoundMention]:
    """Where the rules' names are: each occurrence of a chunk's names in it, the longest first, none in another."""
    offsets = labelled_offsets(graph.text, prepared)
    found: dict[tuple[int, int], FoundMention] = {}
    taken: set[int] = set()
    for one in sorted(prepared.mentions, key=lambda mention: (-len(mention.surface), mention.chunk, mention.name)):
        chunk = prepared.chunked.chunks[one.chunk]
        at = chunk.text.find(one.surface)
        while at >= 0:
            start, end = chunk.start + at, chunk.start + at + len(one.surface)
            if start in offsets and end - 1 in offsets:
                span = offsets[start], offsets[end - 1] + 1
                if taken.isdisjoint(range(*span)):
                    taken.update(range(*span))
                    found[span] = FoundMention(*span, LABELS.get(one.kind, OTHER_LABEL), one.name, one.chunk)
            at = chunk.text.find(one.surface, at + len(one.surface))
    return sorted(found.values())


def extraction_of(encoder: PromptedEncoder) -> Extract:
    """By the tagger of the encoder where it has one, else by rules."""
    tagger = tagger_for(encoder)
    return rule_mentions if tagger is None else tagged_mentions(encoder, tagger)


def tagged_mentions(encoder: PromptedEncoder, tagger: MentionTagger) -> Extract:
    """What the tagger finds, through the document's own vote."""

    def extract(graph: LabelledGraph, prepared: PreparedDocument) -> list[FoundMention]:
        offsets = labelled_offsets(graph.text, prepared)
        _, spans = tagger.encode(encoder, prepared.embedding_texts)
        return [
            FoundMention(
                offsets[one.start],
                offsets[one.end - 1] + 1,
                LABELS.get(one.entity_type, OTHER_LABEL),
                one.name,
                one.chunk,
            )
            for one in entity_occurrences(prepared, spans)
        ]

    return extract


def labelled_offsets(text: str, prepared: PreparedDocument) -> dict[int, int]:
    """{offset in the canonical text: offset in the labelled text} of each character of the chunks that is not a blank.

    Raises ValueError where the two texts differ in more than blanks.
    """
    canonical = {
        at: sign
        for chunk in prepared.chunked.chunks
        for at, sign in enumerate(chunk.text, chunk.start)
        if not sign.isspace()
    }
    places = [at for at, sign in enumerate(text) if not sign.isspace()]
    if [text[at] for at in places] != [canonical[at] for at in sorted(canonical)]:
        raise ValueError(f"The chunks of {prepared.key} do not hold its text, apart from blanks.")
    return dict(zip(sorted(canonical), places, strict=True))


def _measure_one(
    figures: GraphFigures, graph: LabelledGraph, prepared: PreparedDocument, found: Sequence[FoundMention]
) -> None:
    figures.documents += 1
    spans = Agreement.of([(each.start, each.end) for each in found], [(one.start, one.end) for one in graph.mentions])
    figures.spans = figures.spans.plus(spans)
    if graph.domain:
        figures.by_domain[graph.domain] = figures.by_domain[graph.domain].plus(spans)
        return
    typed = [((each.start, each.end), each.kind) for each in found]
    labelled = [((each.start, each.end), each.kind) for each in graph.mentions]
    figures.typed = figures.typed.plus(Agreement.of(typed, labelled))
    for kind, agreement in agreement_by(typed, labelled).items():
        figures.by_type[kind] = figures.by_type[kind].plus(agreement)
    entities = dict(zip(found, entities_of(found), strict=True))
    by_span = {(each.start, each.end): entity for each, entity in entities.items()}
    both = [(by_span[one.start, one.end], one.entity) for one in graph.mentions if (one.start, one.end) in by_span]
    figures.entities.add([entity for entity, _ in both], [label for _, label in both])
    joined, pairs = recalled_pairs(_graph_of(graph, prepared, entities, both), graph.relations)
    figures.pairs_joined += joined
    figures.pairs += pairs


def entities_of(mentions: Sequence[FoundMention]) -> list[str]:
    """The entity of each mention of one document: mentions of equal normalised names are one, and of a person those of
    its full name."""
    whole = full_names(mention.name for mention in mentions if mention.kind == LABELS["person"])
    return [whole.get(mention.name, mention.name) for mention in mentions]


def _graph_of(
    graph: LabelledGraph,
    prepared: PreparedDocument,
    entities: Mapping[FoundMention, str],
    both: Iterable[tuple[str, int]],
) -> DocumentGraph:
    """What the extracted graph says of the labelled entities. One counts as mentioned wherever an entity is that was
    given to one of its mentions."""
    chunks_of: dict[str, set[int]] = defaultdict(set)
    for mention, entity in entities.items():
        chunks_of[entity].add(mention.chunk)
    names: dict[int, set[str]] = defaultdict(set)
    chunks: dict[int, set[int]] = defaultdict(set)
    for one in graph.mentions:
        names[one.entity].add(normalise_name(graph.text[one.start : one.end]))
    for entity, label in both:
        chunks[label] |= chunks_of[entity]
        names[label].add(entity)
    labels_of: dict[str, set[int]] = defaultdict(set)
    for label, its_names in names.items():
        for name in its_names:
            labels_of[name].add(label)
    joined: set[Pair] = set()
    for statement in prepared.statements:
        first, second = (labels_of.get(name, set()) for _, name, _ in statement.roles[:2])
        joined |= {(min(one, other), max(one, other)) for one in first for other in second}
    about = {label for each in prepared.about for label in labels_of.get(each.name, ())}
    return DocumentGraph(chunks, joined, about)


def show_figures(console: "Console", name: str, report: Mapping[str, Any]) -> None:
    """A report as tables: the figures of the whole, then mentions by type or by domain. None of a tagger on documents
    that it was trained on."""
    console.print(f"{name}, split {report['split']}: {report['documents']:,} documents")
    if "tagger_trained_on" in report:
        console.print(
            f"The mention tagger was trained on these documents ({report['tagger_trained_on']}): its figures on them "
            "are not shown. Name other documents, or measure the rules with --rules."
        )
        return
    table = Table("measure", "F1", "precision", "recall", "labelled", "found")
    rows = {"mentions, span and type": "mention_typed", "mentions, span alone": "mention_span"}
    parts = [(title, report[key]) for title, key in rows.items() if key in report]
    parts += [(kind, figures) for kind, figures in report.get("by_type", report.get("by_domain", {})).items()]
    for title, figures in parts:
        shares = (f"{figures[key]:.3f}" for key in ("f1", "precision", "recall"))
        table.add_row(title, *shares, f"{figures['labelled']:,}", f"{figures['found']:,}")
    if "entity_b3" in report:
        shares = (f"{report['entity_b3'][key]:.3f}" for key in ("f1", "precision", "recall"))
        table.add_row("entities, B-cubed", *shares, f"{report['entity_b3']['mentions']:,}", "")
        relation = report["relation"]
        table.add_row("relations, joined", "", "", f"{report['relation_recall']:.3f}", f"{relation['labelled']:,}", "")
    console.print(table)
    if "by_domain" in report:
        console.print(f"mean of domains, span alone: {report['mention_span_f1']:.3f}")
