"""A set of questions, from documents and a seed: the same collection and the same seed give the same set."""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from query_api.evaluation.synthetic.fields import structured, temporal
from query_api.evaluation.synthetic.hops import multi_hop
from query_api.evaluation.synthetic.made import Made, Maker, Material
from query_api.evaluation.synthetic.reading import IndexedDocument
from query_api.evaluation.synthetic.vocabulary import Vocabulary
from query_api.evaluation.synthetic.wordings import exact, semantic
from schemas.errors import Failure, WrongSetting

MAKERS: Mapping[str, Maker] = {
    "exact": exact,
    "structured": structured,
    "semantic": semantic,
    "temporal": temporal,
    "multi-hop": multi_hop,
}


class QuestionSet(msgspec.Struct, frozen=True, kw_only=True):
    """`wanted` questions of each kind were asked for; `made` holds as many as the collection gives, without doubles."""

    collection: str
    seed: int
    wanted: int
    documents: tuple[IndexedDocument, ...]
    made: tuple[Made, ...]

    def counts(self, kinds: Sequence[str]) -> dict[str, int]:
        return {kind: sum(each.kind == kind for each in self.made) for kind in kinds}


def kinds_named(names: str) -> tuple[str, ...]:
    """The kinds of a comma-separated list. Raises WrongSetting for one that is not known."""
    wanted = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in wanted:
        if name not in MAKERS:
            raise WrongSetting(f"There is no kind of question {name!r}; choose --kinds from {','.join(MAKERS)}.")
    return wanted or tuple(MAKERS)


def make_questions(
    collection: str, documents: Sequence[IndexedDocument], kinds: Sequence[str], count: int, seed: int
) -> QuestionSet:
    """Raises Failure when the documents give no question of any of the kinds."""
    material = Material(documents, Vocabulary(documents), {document.id: document for document in documents})
    made: list[Made] = []
    for kind in kinds:
        made += islice(_distinct(kind, material, seed), count)
    if not made:
        raise Failure(
            f"The collection {collection!r} gives no question of these kinds ({', '.join(kinds)}): its documents hold "
            "too little text, no fields, and no links. Choose other --kinds, or another collection."
        )
    return QuestionSet(collection=collection, seed=seed, wanted=count, documents=tuple(documents), made=tuple(made))


def _distinct(kind: str, material: Material, seed: int) -> Iterator[Made]:
    seen: set[str] = set()
    for made in MAKERS[kind](material, random.Random(f"{seed} {kind}")):
        if made.text not in seen:
            seen.add(made.text)
            yield made
