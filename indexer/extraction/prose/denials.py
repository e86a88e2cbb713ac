"""What a sentence denies, by the sentence that would state it: `Marsh uses Delta` for `Marsh does not use Delta`."""

import re

from indexer.extraction.prose.open_verbs import verb_of

# Not: `not only`, `not always`, `not yet`.
_WHOLLY = r"(?! (?:only|just|merely|simply|necessarily|always|all|every|yet|until|so|as|too|even|entirely|solely)\b)"
_DENIAL = re.compile(
    rf"\b(?:(?P<do>do|does|did)(?: not|n['’]t){_WHOLLY} (?P<verb>[a-z]+)|(?P<be>is|are|was|were|has|have)"
    rf"(?: no longer| not| never|n['’]t){_WHOLLY}|(?:never|no longer) (?=[a-z])|no (?=\w))"
)


def affirmed(sentence: str) -> str | None:
    """The sentence without its denial; None where it denies nothing, or more than one thing."""
    changed, count = _DENIAL.subn(_without, sentence)
    return changed if count == 1 else None


def _without(found: re.Match[str]) -> str:
    if found["verb"] is None:
        return found["be"] or ""
    return (found["do"] != "do" and verb_of(found["verb"]).third) or found["verb"]
