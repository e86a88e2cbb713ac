"""Questions in ten languages find their document by words alone."""

from collections import Counter
from itertools import groupby
from pathlib import Path

from indexer.chunking.sentences import language_of
from indexer.text_analysis import query_terms, terms_of
from query_api.evaluation.datasets import read_folder
from schemas.ids import DocumentKey
from tests.unit.query_api.index.text.test_bm25_index import index

FOLDER = Path("tests/bench/ten_languages")


def test_nearly_each_question_of_each_language_finds_its_document_by_words() -> None:
    asked = read_folder(FOLDER)
    documents = {each.id: each.text or "" for each in asked.documents}
    words = index(
        {DocumentKey("texts", name): [(name, terms_of(text, language_of(text)))] for name, text in documents.items()}
    )
    found: Counter[str] = Counter()
    for question in asked.questions:
        first = words.search(query_terms(question.text), 1)
        found[question.id[:2]] += [each.passage_id for each in first] == list(asked.judgements[question.id])
    sizes = {language: len(list(each)) for language, each in groupby(documents, key=lambda name: name[:2])}
    assert len(sizes) == 10
    assert [language for language in sizes if found[language] < 0.9 * sizes[language]] == []
    assert sum(found.values()) >= 0.97 * len(documents)
