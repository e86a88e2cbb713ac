"""English words of closed classes, and nouns that name nothing alone, for the reading of sentences."""

import re
from functools import lru_cache

from indexer.extraction.lexicon import word_set

CACHED_WORDS = 16_384

DETERMINERS = word_set("the a an this that these those its his her their our my your each every all both some any no")
# What a phrase with one of these names is elsewhere in the text.
WEAK_DETERMINERS = word_set("this that these those some any no its his her their my your both")
PREPOSITIONS = word_set(
    """of in on at by for with from to into onto over under about above after against along among around as before
    behind below beneath beside between beyond despite down during except inside like near off out outside past per
    since through throughout toward towards under until unto up upon via within without atop across alongside including
    unlike versus vs"""
)
PRONOUNS = word_set(
    """i he she it we they you me him us them himself herself itself themselves who whom whose which what there here one
    ones somebody anybody someone anyone everyone nobody something anything everything nothing each other others another
    this that these those mine yours ours theirs hers none both whoever whomever whatever whichever"""
)
CONJUNCTIONS = word_set("and or but nor & plus yet so")
SUBORDINATORS = word_set(
    """if unless when whenever while whereas because although though once whether where wherever how why that than till
    lest provided"""
)
BE = word_set("is are was were be been being am 's 're")
_AUXILIARIES = BE | word_set("has have had having do does did doing done get gets got")
MODALS = word_set("can could may might must shall should will would cannot ought dare 'll 'd")
# What turns a sentence into its opposite; `No. 5` does not.
DENIAL = re.compile(
    r"\b(?:not|never|neither|nor|none|nobody|nothing|without|cannot|no(?!\.))\b|n['’]t\b", re.IGNORECASE
)
NEGATIONS = word_set("not never no neither nor hardly rarely seldom without longer")
ADVERBS = word_set(
    """also now then currently always often usually still already just only even again soon later today here there thus
    hence therefore however instead rather quite very too almost nearly first formerly originally once sometimes
    typically twice both together alone itself ever yet more most less least much well far back apart mostly internally
    natively"""
)
# Past forms of common verbs that state no relation here; none of them is a noun.
PAST_VERBS = word_set(
    """became began came went took gave said told saw grew felt fell rose sat met lost ate broke chose drew flew knew
    meant spoke thought threw understood wore died born happened remained seemed appeared"""
)
NUMBERS = word_set("one two three four five six seven eight nine ten eleven twelve")
# A phrase that begins with one of these names no one thing.
QUANTIFIERS = word_set(
    """two three four five six seven eight nine ten eleven twelve several many few various different certain other
    further following more most latter former given resulting passed above below first second third next last similar
    numerous multiple additional such enough"""
)
_CLOSED = (
    DETERMINERS
    | PREPOSITIONS
    | PRONOUNS
    | CONJUNCTIONS
    | SUBORDINATORS
    | _AUXILIARIES
    | MODALS
    | NEGATIONS
    | (ADVERBS - {"first"})
    | PAST_VERBS
    | word_set("such own same using based according etc e.g. i.e. eg ie cf ago includes thanks due")
)
_NO_ADVERBS = word_set(  # in -ly
    """family assembly supply reply monopoly anomaly ally july italy sicily butterfly fly lily rally jelly belly bully
    folly holly tally doily homily melancholy panoply filly gully dolly lolly friendly costly deadly elderly hilly curly
    oily holy woolly stately timely lonely lovely ugly silly jolly burly southerly northerly easterly westerly scholarly
    bubbly"""
)
_ING_NOUNS = word_set(
    """morning evening
    learning processing testing engineering computing logging monitoring indexing caching scheduling routing training
    building setting mapping string thing encoding parsing binding meeting king ring wing spring rating marketing
    banking shipping billing pricing housing mining painting recording engraving clothing programming hosting
    messaging trading publishing gaming manufacturing casing embedding partitioning timing wiring warning landing
    tracing tracking sampling streaming batching sharding scaling polling parking shopping fishing farming sailing
    racing boxing wrestling skating skiing swimming singing dancing acting writing editing filming broadcasting
    advertising consulting accounting funding spending hearing crossing opening ending beginning drawing carving
    signalling signaling interning profiling debugging handling typing running versioning"""
)
_ING_VERBS = word_set(
    """providing using including containing featuring porting making giving allowing offering having creating serving
    covering consisting being spanning following showing describing working based starring belonging referring"""
)
_PARTICIPLES = word_set(
    """written built held kept made born known sold spoken taken used given bought brought caught taught worn chosen
    driven drawn shown grown thrown broken stolen beaten"""
)
# Nouns that say nothing alone: what they name depends on the place in the text.
VAGUE = word_set(
    """way thing kind sort type form part lot number set case reason result problem question point fact idea goal
    purpose name value same default choice option example approach method step change issue order time day year version
    list item element object class function argument parameter variable string file code line text user people person
    man woman section document page chapter paragraph table figure process behavior behaviour feature place area side
    end start beginning rest majority amount group member information detail difference effect use usage need work
    aspect situation condition reader author developer programmer community proposal specification pep above below
    following latter former previous next first last second third other only one two three main old new current own best
    most more few many several key single entire whole correct right left wrong true false none good bad better great
    nice easy easiest simple necessary important possible common popular able available useful must mistake solution
    implementation program application project system module package library tool field attribute property structure
    data input output format content message call caller return statement expression instance syntax operation action
    command character bit byte word term sentence keyword semantics body block team company organisation organization
    city town country state government book film song album story series event world life home house family father
    mother son daughter wife husband brother sister king queen president army war battle game match season club school
    university college church service server client basis attempt addition matter role copy piece pair variety range
    subset requirement reference stuff everybody everything patch pull request commit branch cast crew help support
    feedback access statistics proportion percentage fraction portion share development aide thanks hand turn"""
)
# Adjectives that say nothing of a thing, and end no noun phrase.
JUDGEMENTS = word_set(
    """good bad better best worse worst great nice wrong right easy easier easiest hard harder hardest simple must
    mistake mess shame pity pain bonus win problem fan lot bit little few big small large huge long short safe common
    rare important necessary useful possible impossible useless typical natural obvious clear different similar same
    only late special first last next main key major minor earlier later default current latest new old recommended
    preferred
    required optional fine ok okay done true false free ready open closed empty full nearest fastest largest smallest
    highest lowest longest oldest youngest biggest earliest second third fourth one two three four five"""
)
_NOT_NOUN = re.compile(r"(?:able|ible|ful|less|ous|ical|iest|ish)$")
# Nouns with such an ending.
_NOUNS = word_set(
    """table variable cable timetable vegetable bible executable deliverable crucible article vehicle handful dish fish
    parish british english irish spanish turkish danish polish finnish swedish scottish flourish radical chemical
    musical periodical observable iterable callable constable stable marble fable"""
)


@lru_cache(CACHED_WORDS)
def is_open(word: str) -> bool:
    """Whether a word, in lower case, may belong to a noun phrase: it is of no closed class, no adverb, not ""."""
    if not word or word in _CLOSED or not (word[0].isalnum() or word[0] == "_") or word.endswith(("n't", "n’t")):
        return False
    if ("'" in word or "’" in word) and re.split("['’]", word)[0] in PRONOUNS:  # `we've`
        return False
    return not (word.endswith("ly") and is_adverb(word))


def is_adverb(word: str) -> bool:
    """Whether a word in lower case is an adverb that may be between a subject and its verb."""
    return word in ADVERBS or (word.endswith("ly") and len(word) > 4 and word not in _NO_ADVERBS)


def is_gerund(word: str) -> bool:
    """Whether a word in lower case is a verb in -ing, and no noun."""
    return word.endswith("ing") and len(word) > 4 and word not in _ING_NOUNS


def is_present_participle(word: str) -> bool:
    """Whether a word in lower case is a gerund that takes an object: `a series providing help`."""
    return word in _ING_VERBS


def is_participle(word: str) -> bool:
    """Whether a word in lower case has the form of a past participle."""
    return (word.endswith("ed") and len(word) > 4) or word in _PARTICIPLES


def is_noun(word: str) -> bool:
    """Whether a word in lower case may be the head of a phrase, as far as its form shows: not `easiest`, `2`."""
    if word in JUDGEMENTS or len(word) < 2 or not word[0].isalpha() or is_gerund(word) or word.endswith("-called"):
        return False
    return not (_NOT_NOUN.search(word) and singular(word) not in _NOUNS)


def singular(noun: str) -> str:
    """A plural noun in the singular, by its ending alone."""
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun


def plural(noun: str) -> str:
    """A noun in the plural, by its ending alone: the opposite of `singular`."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"
