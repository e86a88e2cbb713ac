"""How often a written sentence is taken for supported that has one thing wrong: `python -m tests.bench.written_support
FOLDER`, a labelled collection as `thalweg evaluate` takes it, such as HotpotQA.

Sentences of its documents, five documents at a time, are changed in one place, as a model might be wrong: a name or a
number exchanged by one of another document or of its own, a denial put in; or right: one word by another. Nothing is
loaded or searched. Prints a line for each kind, by which documents are cited, and last the shares as JSON.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from query_api.answers.model.support import Source, sources_of, supporting
from query_api.evaluation.datasets import read_folder
from schemas.hits import Hit, HitSource

SENTENCES, DOCUMENTS, LEAST_WORDS, SEED = 1_500, 5, 6, 5
NUMBER = re.compile(r"\b\d{2,4}\b")
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}(?: [A-Z][a-z]+)*")
WORD = re.compile(r"(?<= )[a-z]{5,}(?= )")
COPULA = re.compile(r"\b(is|was|were|are)\b")


def as_hit(rank: int, title: str, text: str) -> Hit:
    source = HitSource(topic="documents", partition=0, offset=rank)
    return Hit(
        rank=rank, chunk_id=str(rank), passage_id=str(rank), document_id=str(rank), collection="c", title=title,
        text=text, parent_text=text, start=0, end=len(text), parent_start=0, section=[], score=1.0, scores={},
        confidence=None, channels=[], source=source,
    )  # fmt: skip


def changes(text: str, own: list[Source], others: list[Source], rng: random.Random) -> Iterator[tuple[str, str]]:
    """(kind, the sentence with one change)."""
    yield "verbatim", text
    yield "a denial", COPULA.sub(r"\1 not", text, count=1)
    yield "another word", WORD.sub("blithering", text, count=1)
    for what, pattern in (("number", NUMBER), ("name", NAME)):
        for whose, pool in (("its own", own), ("another", others)):
            found = [each for source in pool for each in pattern.findall(source.sentence.text) if each not in text]
            if found:
                chosen = rng.choice(found)
                yield f"a {what} of {whose} document", pattern.sub(lambda _, put=chosen: put, text, count=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    documents = [each for each in read_folder(parser.parse_args().folder).documents if each.text]
    rng = random.Random(SEED)
    asked, supported = Counter[str](), Counter[str]()
    for _ in range(SENTENCES):
        hits = [
            as_hit(at, each.title or "", each.text or "") for at, each in enumerate(rng.sample(documents, DOCUMENTS))
        ]
        own, *rest = sources_of(hits)
        others = [source for sources in rest for source in sources]
        long = [source for source in own if source.sentence.words >= LEAST_WORDS]
        if not long:
            continue
        text = rng.choice(long).sentence.text
        for kind, changed in changes(text, own, others, rng):
            if (changed == text) == (kind == "verbatim"):
                for cited, sources in (("it is cited", own), ("all five are", own + others)):
                    asked[f"{kind}; {cited}"] += 1
                    supported[f"{kind}; {cited}"] += bool(supporting(changed, sources))
    shares = {name: round(supported[name] / count, 4) for name, count in asked.items()}
    for name, share in shares.items():
        print(f"{name:46} {supported[name]:6,} of {asked[name]:6,}  {share:.1%}")
    print(json.dumps(shares))


if __name__ == "__main__":
    main()
