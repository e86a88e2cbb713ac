"""The keyword channel: the passages that hold the question's words."""

from query_api.index.snapshot import Candidate
from query_api.index.text.segments import Scope
from query_api.index.text.snapshot import TextSnapshot


def keyword_channel(text: TextSnapshot, query: str, limit: int, scope: Scope) -> list[Candidate]:
    """The `limit` passages with the highest BM25, best first, equal scores in the order of their ids."""
    found = text.keyword_search(query, limit, scope)
    return [Candidate(passage.passage_id, passage.score, passage.key) for passage in found]
