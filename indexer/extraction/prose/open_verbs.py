"""English verbs, with what else a form may be: see `training/list_verbs.py`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

VERBS_FILE = "verbs.txt"


class OpenVerb(NamedTuple):
    """What a written form may be of a verb. `third` is the verb's third person; `is_certain` is whether its base form
    and its third person are never a noun or an adjective; `is_irregular` whether its past does not end in `ed`."""

    third: str
    is_base: bool
    is_third: bool
    is_past: bool
    is_participle: bool
    is_certain: bool
    is_irregular: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether it is the verb alone that has this form, in the present."""
        return self.is_certain and (self.is_base or self.is_third)


NO_VERB = OpenVerb("", *[False] * 5)


def verb_of(form: str) -> OpenVerb:
    """The verb that a word in lower case may be a form of; else NO_VERB."""
    return open_verbs().get(form, NO_VERB)


@cache
def open_verbs() -> Mapping[str, OpenVerb]:
    """{form in lower case: the verb}; of a form of two verbs the first in the alphabet."""
    found: dict[str, OpenVerb] = {}
    for line in (files("indexer.extraction") / VERBS_FILE).read_text("utf-8").splitlines():
        base, third, past, participle, *certain = line.split()
        for form in (base, third, past, participle):
            of_form = OpenVerb(
                third, form == base, form == third, form == past, form == participle, bool(certain), past[-2:] != "ed"
            )
            found.setdefault(form, of_form)
    return found
