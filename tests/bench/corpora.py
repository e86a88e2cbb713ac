"""What the benchmark reads: a BEIR-style folder, or the shipped sample repeated with changed words."""

import gzip
import json
import lzma
import re
from dataclasses import dataclass
from pathlib import Path

from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey

SAMPLE = Path(__file__).parents[2] / "deploy" / "samples" / "peps.jsonl.xz"
SAMPLE_ROUNDS = 6
COLLECTION = "bench"


@dataclass(frozen=True)
class BenchCorpus:
    name: str
    collection: str
    documents: list[DocumentUpsert]
    queries: list[str]


def read_corpus(folder: Path | None) -> BenchCorpus:
    """`corpus.jsonl.gz` and `queries.jsonl.gz` of the folder, or the sample."""
    return _beir(folder) if folder else _sample()


def _beir(folder: Path) -> BenchCorpus:
    with gzip.open(folder / "corpus.jsonl.gz", "rt") as lines:
        documents = [_document(row["_id"], row["title"], row["text"], "text/plain") for row in map(json.loads, lines)]
    with gzip.open(folder / "queries.jsonl.gz", "rt") as lines:
        queries = [json.loads(line)["text"] for line in lines]
    return BenchCorpus(folder.name, COLLECTION, documents, queries)


def markdown_sample() -> list[tuple[DocumentKey, bytes]]:
    """The newest state of each sample document, its reStructuredText written as Markdown."""
    return [(DocumentKey(COLLECTION, name), _as_markdown(text).encode()) for name, text in _newest_states().items()]


def _as_markdown(text: str) -> str:
    """Headings, code and links; what else there is reads the same."""
    levels = {"=": "##", "-": "###"}
    text = re.sub(
        r"^([^\n]{3,90})\n([=~'^-])\2{2,}$", lambda m: f"{levels.get(m[2], '####')} {m[1]}", text, flags=re.MULTILINE
    )
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"`([^`<\n]+) <([^>\n]+)>`__?", r"[\1](\2)", text)
    text = re.sub(r":pep:`(\d+)`", r"[PEP \1](pep-\1.rst)", text)
    code = r"^\.\. code-block:: (\w+)\n\n((?:[ ]+[^\n]*\n|\n)+)"
    return re.sub(code, lambda m: f"```{m[1]}\n{m[2].rstrip()}\n```\n\n", text, flags=re.MULTILINE)


def _newest_states() -> dict[str, str]:
    newest: dict[str, str] = {}
    with lzma.open(SAMPLE, "rt") as lines:
        for row in map(json.loads, lines):
            newest.pop(row["id"], None)
            if "content" in row:
                newest[row["id"]] = row["content"]
    return newest


def _sample() -> BenchCorpus:
    """The newest state of each sample document, then copies whose words differ, so that no chunk is known already."""
    newest = _newest_states()
    documents = [
        _document(f"{number}-{name}", None, _changed(text, number), "text/x-rst")
        for number in range(SAMPLE_ROUNDS)
        for name, text in newest.items()
    ]
    titles = [found[1] for text in newest.values() if (found := re.search(r"^Title:\s*(.+)$", text, re.MULTILINE))]
    return BenchCorpus("sample", COLLECTION, documents, [f"Which proposal is about {title}?" for title in titles])


def _document(name: str, title: str | None, text: str, content_type: str) -> DocumentUpsert:
    return DocumentUpsert(
        key=DocumentKey(COLLECTION, name), content=text.encode(), content_type=content_type, title=title
    )


def _changed(text: str, number: int) -> str:
    """Every ninth longer word, beginning elsewhere in each round, is spelt backwards."""
    if number == 0:
        return text
    words = iter(range(len(text)))
    return re.sub(r"\b[a-z]{5,}\b", lambda m: m[0][::-1] if next(words) % 9 == number else m[0], text)
