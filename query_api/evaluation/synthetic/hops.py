"""Questions with one gold path: they describe a document only through another one, which names it.

Two forms, in turns where a collection has both. Of a **relation**: "What is the status of the document that replaced
<title of A>?", asked for what A's header names. Of a **link** (`clues.py`): a sentence of A with the name of B taken
out.

Only B is gold. Any search that reads the question finds A, whose words stand in it, so A judged would give every
approach the same half and hide what is measured: whether the step from A to B is made. A is in the path.

What makes it one path, each a property of texts and none of a ranking: A's title is that of A alone; the relation, or
the sentence, names one document; B does not quote A's title; and of B's names no word stands in the question that A
does not give (so B is not simply asked for). No question is dropped because a search finds it.
"""

import random
from collections import Counter
from collections.abc import Iterator

from query_api.evaluation.synthetic.clues import by_link
from query_api.evaluation.synthetic.fields import date_in
from query_api.evaluation.synthetic.made import Made, Material, Step
from query_api.evaluation.synthetic.naming import asks_for, described, quotes, whole
from query_api.evaluation.synthetic.reading import IndexedDocument

_RELATED = {
    "superseded_by": "the document that superseded “{}”",
    "obsoleted_by": "the document that made “{}” obsolete",
    "replaced_by": "the document that replaced “{}”",
}
_RELATED_BY = {"replaces": "replaces", "requires": "requires", "supersedes": "supersedes", "updates": "updates"}
_ASKED = ("What is the {} of {}?", "Which {} does {} have?", "I need the {} of {}.")


def multi_hop(material: Material, chance: random.Random) -> Iterator[Made]:
    """Both forms in turns, until neither has more."""
    forms = [_by_relation(material, chance), by_link(material, chance)]
    while forms:
        for form in list(forms):
            made = next(form, None)
            if made is None:
                forms.remove(form)
            else:
                yield made


def _by_relation(material: Material, chance: random.Random) -> Iterator[Made]:
    titles = Counter(described(document).lower() for document in material.documents)
    for first in chance.sample(material.documents, len(material.documents)):
        title = described(first)
        if titles[title.lower()] > 1:
            continue
        by_field = Counter(field for field, _ in first.relations)
        for field, target in chance.sample(first.relations, len(first.relations)):
            last = material.by_id[target]
            single = [name for name, held in last.fields.items() if len(held) == 1 and _tells(held[0], last)]
            if by_field[field] > 1 or not single or quotes(last, title):
                continue
            wording = _RELATED.get(field, f"the document that “{{}}” {_verb(field)}").format(title)
            asked = chance.choice(single)
            text = chance.choice(_ASKED).format(asked.replace("_", " "), wording)
            if asks_for(last, text, first):
                continue
            step = Step(first.id, field, last.id, f"{field}: {last.names[-1]}")
            yield Made("multi-hop", text, {last.id: 1}, (step,))
            break


def _tells(value: str, document: IndexedDocument) -> bool:
    """Whether the value is more than a date, and than a part of what the document is called."""
    return date_in(value) is None and not any(whole(value).search(name) for name in document.names)


def _verb(field: str) -> str:
    return _RELATED_BY.get(field, f"names under “{field.replace('_', ' ')}”")
