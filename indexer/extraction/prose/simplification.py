"""Sentences in other words: plainer ones that say the same, and what a sentence denies, by the one that would state it
(`Marsh uses Delta` for `Marsh does not use Delta`)."""

import re

from indexer.extraction.prose.open_verbs import verb_of

# Not: `not only`, `not always`, `not yet`.
_WHOLLY = r"(?! (?:only|just|merely|simply|necessarily|always|all|every|yet|until|so|as|too|even|entirely|solely)\b)"
_DENIAL = re.compile(
    rf"\b(?:(?P<do>do|does|did)(?: not|n['’]t){_WHOLLY} (?P<verb>[a-z]+)|(?P<be>is|are|was|were|has|have)"
    rf"(?: no longer| not| never|n['’]t){_WHOLLY}|(?:never|no longer) (?=[a-z])|no (?=\w))"
)

# What may be left out, or is said by `and`, and letters that all that is so have: `both A and B`, `all of the`
_PLAINER = [
    (letters, re.compile(pattern), instead)
    for letters, pattern, instead in (
        ("ot only ", r"\b[Nn]ot only ", ""),
        ("oth ", r"\b[Bb]oth (?!(?:of|is|are|was|were|have|had|can)\b)", ""),
        ("but also ", r",? but also ", " and "),
        ("as well as ", r",? as well as ", " and "),
        (" of ", r"(?<!are )(?<!were )\b(?:[Aa]ll|[Bb]oth|[Ee]ach) of (?:the|our) ", "the "),
        (", ", r", (?:(?:by|in) contrast|in (?:turn|fact)|for (?:example|instance)|of course|too|however|also),", ""),
        (" that ", r"^It (?:is|was) (?:at|by|in|on|from|to|through|under|with) [^,;:]{3,60}? that (?=[A-Z])", ""),
        ("`", r"(?<!`)`(\w[\w.-]*)`(?!`)", r"\1"),
    )
]


def plain(sentence: str) -> str:
    """The sentence without the words that only join or stress: `uses A and B` for `uses both A and B`."""
    for letters, pattern, instead in _PLAINER:
        if letters in sentence:
            sentence = pattern.sub(instead, sentence)
    return sentence


def affirmed(sentence: str) -> str | None:
    """The sentence without its denial; None where it denies nothing, or more than one thing."""
    changed, count = _DENIAL.subn(_without, sentence)
    return changed if count == 1 else None


def _without(found: re.Match[str]) -> str:
    if found["verb"] is None:
        return found["be"] or ""
    return (found["do"] != "do" and verb_of(found["verb"]).third) or found["verb"]
