"""What is summarised: passages of a document, or those that the summary of a community cites, with their extract."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from indexer.communities.summaries import SENTENCE_CHARACTERS, SENTENCES, UNFINISHED
from indexer.text_analysis import terms_of
from query_api.answers.answer import citation_of, pieces
from query_api.answers.sentences import HITS, Sentence, sentences_of_hits
from query_api.index.search_snapshot import Snapshot
from query_api.query.analysis import analysed_question
from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.results.hit_assembly import PageTexts, assemble_hits
from query_api.study.sentences import is_self_contained
from schemas.answers import MOST_WORDS, Citation, Summary
from schemas.communities import CommunityDetail
from schemas.hits import Hit
from schemas.ids import DocumentKey

OF_DOCUMENT = 4  # sentences
LOOKED_AT = 100  # passages of a document, at even distances where it has more
MOST_NAMES = 20


class Summarised(NamedTuple):
    """`subject` says what it is of: a community's id, or a document's collection and id. The summary has at most `most`
    sentences."""

    subject: tuple[str, ...]
    hits: list[Hit]
    extract: Summary
    most: int
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def of_document(snapshot: Snapshot, key: DocumentKey, passage_ids: Sequence[str]) -> Summarised:
    """Of up to LOOKED_AT of its passages, in their order: the first one and those that the best sentences are in, then
    the next until there are as many as a model reads. Blocks."""
    distance = max(1, math.ceil(len(passage_ids) / LOOKED_AT))
    found = _hits(snapshot, dict.fromkeys(passage_ids[::distance]))
    each_of = (sentences_of_hits([hit], {}, MOST_WORDS) for hit in found)
    sentences = [each._replace(hit=at) for at, of_hit in enumerate(each_of) for each in of_hit]
    chosen = sorted(_most_frequent(sentences, OF_DOCUMENT), key=lambda each: (each.hit, each.start))
    read = sorted(list(dict.fromkeys([0, *(each.hit for each in chosen), *range(len(found))]))[:HITS])
    hits = [found[at].model_copy(update={"rank": rank}) for rank, at in enumerate(read, start=1) if at < len(found)]
    extract = _extract(hits, [each._replace(hit=read.index(each.hit)) for each in chosen])
    notes = (f"Of its {len(passage_ids)} passages the language model read {HITS}.",) if len(passage_ids) > HITS else ()
    return Summarised(tuple(key), hits, extract, OF_DOCUMENT, notes=notes)


def of_community(snapshot: Snapshot, community: CommunityDetail) -> Summarised:
    """Blocks."""
    chunks = snapshot.text.chunks([each.chunk_id for each in community.summary])
    cited = [chunks[each.chunk_id] for each in community.summary if each.chunk_id in chunks]
    hits = _hits(snapshot, {chunk.passage_id: chunk.id for chunk in reversed(cited)})[:HITS]
    there = {
        " ".join(each.text.split()): each._replace(hit=at)
        for at, hit in enumerate(hits)
        for each in sentences_of_hits([hit], {}, MOST_WORDS)
    }
    extract = _extract(hits, [there[each.text] for each in community.summary if each.text in there])
    names = tuple(each.label for each in community.members[:MOST_NAMES])
    return Summarised((community.id,), hits, extract, SENTENCES[community.level][1], names)


def _hits(snapshot: Snapshot, wanted: dict[str, str | None]) -> list[Hit]:
    """Of the passages that are there, in their order, each with the chunk that is wanted of it."""
    text = snapshot.text
    passages = text.passages(wanted)
    page = [RankedPassage(each, wanted[each], 0.0, {}, {}, passages[each].key) for each in wanted if each in passages]
    documents = text.documents(dict.fromkeys(each.key for each in page))
    texts = PageTexts(passages, text.chunks_of_passages(wanted), documents)
    nothing = analysed_question("")
    return list(assemble_hits(page, range(1, len(page) + 1), texts, nothing, {}, None, snapshot.documents_topic))


def _extract(hits: Sequence[Hit], chosen: Sequence[Sentence]) -> Summary:
    citations: list[Citation] = [
        citation_of(number, hits[each.hit], each) for number, each in enumerate(chosen, start=1)
    ]
    return Summary(text="".join(piece.text for piece in pieces(citations)), citations=citations)


def _most_frequent(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """Those whose terms are most frequent among all; what one says counts little in the next: the probability of its
    terms is squared (SumBasic: Vanderwende et al. 2007). Their lengths weigh as in summaries of communities."""
    least, longest = SENTENCE_CHARACTERS
    unique = {each.normalised: each for each in reversed(sentences) if least <= len(each.text) <= longest}
    known = {each: {*terms_of(each.text)} for each in reversed(unique.values())}
    frequency = Counter(term for terms in known.values() for term in terms)
    share = {term: count / frequency.total() for term, count in frequency.items()}
    form = {each: (1.0 if is_self_contained(each.text) else UNFINISHED) / math.sqrt(len(each.text)) for each in known}
    chosen: list[Sentence] = []
    while known and len(chosen) < most:
        best = max(known, key=lambda each: form[each] * math.fsum(share[term] for term in known[each]))
        chosen.append(best)
        for term in known.pop(best):
            share[term] **= 2
    return chosen
