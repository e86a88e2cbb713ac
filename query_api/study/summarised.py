"""What is summarised: passages of a document, or those that the summary of a community cites, with their extract."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from indexer.communities.summaries import SENTENCES
from query_api.answers.answer import citation_of, pieces
from query_api.answers.sentences import HITS, Sentence, sentences_of_hits
from query_api.index.search_snapshot import Snapshot
from query_api.query.analysis import analysed_question
from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.results.hit_assembly import PageTexts, assemble_hits
from query_api.study.sentences import is_self_contained
from schemas.answers import MOST_WORDS, Summary
from schemas.communities import CommunityDetail
from schemas.hits import Hit
from schemas.ids import DocumentKey

MOST_NAMES = 20


class Summarised(NamedTuple):
    """`subject` is a community's id, or a document's collection and id. The summary has at most `most` sentences."""

    subject: tuple[str, ...]
    hits: Sequence[Hit]
    extract: Summary
    most: int
    names: Sequence[str] = ()
    notes: Sequence[str] = ()


def of_document(snapshot: Snapshot, key: DocumentKey, passage_ids: Sequence[str]) -> Summarised:
    """Of its passages, where they are many of as many as a model reads, at even distances; the extract has the first
    sentence of each that is understood without those around it, else its first one. Blocks."""
    count = len(passage_ids)
    hits = _hits(snapshot, dict.fromkeys(passage_ids[at * count // HITS] for at in range(HITS) if count))
    sentences = _sentences(hits)
    whole = ([each for each in of_hit if is_self_contained(each.text)] or of_hit for of_hit in sentences if of_hit)
    notes = [f"It is of {HITS} of the document's {count} passages."] if count > HITS else []
    return Summarised(tuple(key), hits, _extract(hits, [each[0] for each in whole], notes), HITS, notes=notes)


def of_community(snapshot: Snapshot, community: CommunityDetail) -> Summarised:
    """Blocks."""
    chunks = snapshot.text.chunks([each.chunk_id for each in community.summary])
    hits = _hits(snapshot, {chunk.passage_id: chunk.id for chunk in chunks.values()})[:HITS]
    there = {" ".join(each.text.split()): each for of_hit in _sentences(hits) for each in of_hit}
    cited = [there[each.text] for each in community.summary if each.text in there]
    names = [each.label for each in community.members[:MOST_NAMES]]
    return Summarised((community.id,), hits, _extract(hits, cited), SENTENCES[community.level][1], names)


def is_gone(subject: Sequence[str], snapshot: Snapshot) -> bool:
    """Whether a document was deleted, or a community has broken up."""
    if len(subject) == 2:
        return snapshot.graph.document(DocumentKey(*subject)) is None
    return snapshot.communities is not None and snapshot.communities.row("".join(subject)) is None


def _hits(snapshot: Snapshot, wanted: Mapping[str, str | None]) -> list[Hit]:
    """Of the passages that are there, in this order, each with the chunk that is wanted of it."""
    text = snapshot.text
    passages = text.passages(wanted)
    page = [RankedPassage(each, wanted[each], 0.0, {}, {}, passages[each].key) for each in wanted if each in passages]
    documents = text.documents(dict.fromkeys(each.key for each in page))
    texts = PageTexts(passages, text.chunks_of_passages(wanted), documents)
    question, ranks = analysed_question(""), range(1, len(page) + 1)
    return list(assemble_hits(page, ranks, texts, question, {}, None, snapshot.documents_topic))


def _sentences(hits: Sequence[Hit]) -> list[list[Sentence]]:
    """Of each hit."""
    return [[each._replace(hit=at) for each in sentences_of_hits([hit], {}, MOST_WORDS)] for at, hit in enumerate(hits)]


def _extract(hits: Sequence[Hit], chosen: Sequence[Sentence], notes: Sequence[str] = ()) -> Summary:
    citations = [citation_of(number, hits[each.hit], each) for number, each in enumerate(chosen, start=1)]
    return Summary(text="".join(each.text for each in pieces(citations)), citations=citations, notes=list(notes))
