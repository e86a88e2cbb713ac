"""Small collections cut out of a large one: `python -m tests.bench.subsamples SOURCE… --out DIR [--sizes 50,200,1000]`.

Each has so many documents: those that answer some of the questions, up to two fifths of the size, and others that share
rare words with these, as the documents of one team do. Several are cut of each size, with questions of their own, so
that their figures can be averaged. The same source gives the same samples. They are written as `thalweg evaluate` takes
folders, named `<source>-<size>-<number>`. With `--left-out` each also has half as many questions whose answers were
left out, every other one of them the nearest to the documents by rare words; these have no judgement.

A source is a folder with labelled questions, or a file `leads.jsonl.gz` of encyclopedia articles, of which questions
are made: `explain X`, `what is X`, or X alone. A third of the articles keep their titles, a third have none, and of the
others three at a time make the notes of a day, with no title that helps.
"""

import argparse
import gzip
import hashlib
import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import TypeVar

import msgspec

from query_api.evaluation.datasets import QRELS_HEADER, LabelledCollection, LabelledDocument, Question, read_folder

SIZES = (50, 200, 1000)
SAMPLES = {10: 8, 20: 6, 50: 6, 100: 3, 200: 3, 1000: 1}
ANSWERS_SHARE = 0.4
MOST_QUESTIONS = 100
FEWEST_QUESTIONS = 5  # of a sample of 50 or more, in proportion of a smaller one
LEFT_OUT = 0.5  # for each question with an answer
ASKED = ("explain {}", "what is {}?", "{}", "how would you describe {}?", "tell me about {}")
NEAREST_OF = 20  # questions, for each that is wanted
NOTES = 3  # articles in one document
LEAD_CHARACTERS = 700  # of an article among others

Line = TypeVar("Line", LabelledDocument, Question)


def shuffled(lines: Sequence[Line]) -> list[Line]:
    """In an order that says nothing, and is always the same."""
    return sorted(lines, key=lambda line: hashlib.sha256(line.id.encode()).digest())


class Words:
    """The words of the documents, and how telling each is: ln(n / df)."""

    def __init__(self, documents: Sequence[LabelledDocument]) -> None:
        self.of = {each.id: words_of(f"{each.title} {each.text}") for each in documents}
        self._count = len(documents)
        self._held = Counter(word for words in self.of.values() for word in words)

    def shared(self, words: frozenset[str], with_words: frozenset[str]) -> float:
        return sum(math.log(self._count / self._held[word]) for word in words & with_words)


def words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def articles(file: Path) -> LabelledCollection:
    """Questions of the form `explain X` about articles, each a line {_id, title, text}."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        found = shuffled([msgspec.json.decode(line, type=LabelledDocument) for line in lines])
    third = len(found) // 3
    titled, untitled, rest = found[:third], found[third : 2 * third], found[2 * third :]
    holder = {each.id: each.id for each in (*titled, *untitled)}
    documents = [*titled, *(msgspec.structs.replace(each, title=None) for each in untitled)]
    for at in range(0, len(rest), NOTES):
        day = f"notes-{at // NOTES + 1}"
        holder |= {each.id: day for each in rest[at : at + NOTES]}
        leads = [(each.text or "")[:LEAD_CHARACTERS].rpartition(".")[0] + "." for each in rest[at : at + NOTES]]
        documents.append(LabelledDocument(id=day, title=f"Notes {at // NOTES + 1}", text="\n\n".join(leads)))
    return LabelledCollection(
        name=file.parent.name,
        split="dev",
        documents=tuple(documents),
        questions=tuple(
            Question(id=each.id, text=ASKED[at % len(ASKED)].format(each.title)) for at, each in enumerate(found)
        ),
        judgements={each.id: {holder[each.id]: 1} for each in found},
    )


def without_answers(
    labelled: LabelledCollection, kept: Set[str], asked: Collection[str], words: Words, count: int
) -> list[Question]:
    """So many questions, none asked already, whose answers are all among the documents that were not kept."""
    left = [
        each
        for each in shuffled(labelled.questions)
        if each.id not in asked and kept.isdisjoint(labelled.judgements[each.id])
    ]
    known = frozenset().union(*(words.of[document] for document in kept))
    near = heapq.nlargest(
        count // 2, left[: NEAREST_OF * count], key=lambda each: words.shared(words_of(each.text), known)
    )
    chosen = {each.id for each in near}
    return [*near, *(each for each in left if each.id not in chosen)][:count]


def samples(
    labelled: LabelledCollection, size: int, most: int, *, left_out: float = 0.0
) -> Iterator[LabelledCollection]:
    """At most so many of one size, with no question in common; `left_out` questions without an answer for each one."""
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
        if len(questions) < min(FEWEST_QUESTIONS, size // 10):
            return
        near = frozenset().union(*(words.of[document] for document in answers))
        others = [each.id for each in shuffled(labelled.documents) if each.id not in answers]
        others = heapq.nlargest(
            size - len(answers), others, key=lambda document: words.shared(words.of[document], near)
        )
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
            unanswered=tuple(
                without_answers(
                    labelled, kept, {each.id for each in questions}, words, math.ceil(left_out * len(questions))
                )
            ),
        )


def write(labelled: LabelledCollection, out: Path) -> Path:
    folder = out / labelled.name
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    questions = (*labelled.questions, *labelled.unanswered)
    for name, lines in (("corpus", labelled.documents), ("queries", questions)):
        (folder / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    rows = ["\t".join(QRELS_HEADER)]
    rows += [
        f"{q}\t{document}\t{grade}" for q, grades in labelled.judgements.items() for document, grade in grades.items()
    ]
    (folder / "qrels" / f"{labelled.split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description="Cut small collections out of large ones.")
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="With commas between.")
    parser.add_argument("--left-out", action="store_true", help="Also questions whose answers are not there.")
    asked = parser.parse_args()
    for source in asked.sources:
        labelled = articles(source) if source.is_file() else read_folder(source)
        for size in map(int, asked.sizes.split(",")):
            if size < len(labelled.documents):
                for each in samples(labelled, size, SAMPLES.get(size, 1), left_out=LEFT_OUT * asked.left_out):
                    print(f"{write(each, asked.out)}: {len(each.documents)} documents, {len(each.questions)} questions")


if __name__ == "__main__":
    main()
