"""Small collections cut out of a large one: `python -m tests.bench.subsamples FOLDER… --out DIR [--sizes 50,200,1000]`.

Each has so many documents: those that answer some of the questions, up to two fifths of the size, and others that share
rare words with these, as the documents of one team do. Several are cut of each size, with questions of their own, so
that their figures can be averaged. The same folder gives the same samples. They are written as `thalweg evaluate` takes
folders, named `<folder>-<size>-<number>`.
"""

import argparse
import hashlib
import heapq
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from query_api.evaluation.datasets import QRELS_HEADER, LabelledCollection, LabelledDocument, Question, read_folder

SIZES = (50, 200, 1000)
SAMPLES = {50: 6, 200: 3, 1000: 1}
ANSWERS_SHARE = 0.4
MOST_QUESTIONS = 100
FEWEST_QUESTIONS = 5

Line = TypeVar("Line", LabelledDocument, Question)


def shuffled(lines: Sequence[Line]) -> list[Line]:
    """In an order that says nothing, and is always the same."""
    return sorted(lines, key=lambda line: hashlib.sha256(line.id.encode()).digest())


class Words:
    """The words of the documents, and how telling each is: ln(n / df)."""

    def __init__(self, documents: Sequence[LabelledDocument]) -> None:
        self.of = {each.id: frozenset(re.findall(r"\w+", f"{each.title} {each.text}".lower())) for each in documents}
        self._count = len(documents)
        self._held = Counter(word for words in self.of.values() for word in words)

    def shared(self, document: str, with_words: frozenset[str]) -> float:
        return sum(math.log(self._count / self._held[word]) for word in self.of[document] & with_words)


def samples(labelled: LabelledCollection, size: int, most: int) -> Iterator[LabelledCollection]:
    """At most so many of one size, with no question in common."""
    by_id = {each.id: each for each in labelled.documents}
    words = Words(labelled.documents)
    left = shuffled(labelled.questions)
    for number in range(1, most + 1):
        questions: list[Question] = []
        answers: dict[str, None] = {}
        while left and len(answers) < ANSWERS_SHARE * size and len(questions) < MOST_QUESTIONS:
            question = left.pop(0)
            grades = labelled.judgements[question.id]
            more = [document for document, grade in grades.items() if grade > 0]
            if len({*answers, *more}) <= size:
                questions.append(question)
                answers |= dict.fromkeys(more)
        if len(questions) < FEWEST_QUESTIONS:
            return
        near = frozenset().union(*(words.of[document] for document in answers))
        others = [each.id for each in shuffled(labelled.documents) if each.id not in answers]
        others = heapq.nlargest(size - len(answers), others, key=lambda document: words.shared(document, near))
        kept = {*answers, *others}
        yield LabelledCollection(
            name=f"{labelled.name}-{size}-{number}",
            split=labelled.split,
            documents=tuple(each for each in by_id.values() if each.id in kept),
            questions=tuple(questions),
            judgements={
                question.id: {
                    document: grade for document, grade in labelled.judgements[question.id].items() if document in kept
                }
                for question in questions
            },
        )


def write(labelled: LabelledCollection, out: Path) -> Path:
    folder = out / labelled.name
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, lines in (("corpus", labelled.documents), ("queries", labelled.questions)):
        (folder / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    rows = ["\t".join(QRELS_HEADER)]
    rows += [
        f"{q}\t{document}\t{grade}" for q, grades in labelled.judgements.items() for document, grade in grades.items()
    ]
    (folder / "qrels" / f"{labelled.split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description="Cut small collections out of large ones.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="With commas between.")
    asked = parser.parse_args()
    for folder in asked.folders:
        labelled = read_folder(folder)
        for size in map(int, asked.sizes.split(",")):
            if size < len(labelled.documents):
                for each in samples(labelled, size, SAMPLES.get(size, 1)):
                    print(f"{write(each, asked.out)}: {len(each.documents)} documents, {len(each.questions)} questions")


if __name__ == "__main__":
    main()
