"""Verbs and nouns that state a relation, and the predicate of each: closed lists of plain English.

A predicate is the verb in the third person (`uses`), a participle or verb with its preposition (`located_in`), or a
noun (`capital_of`). Synonyms share one, so that `relies on` and `depends on` join the same entities. `^` before a
predicate turns subject and object round: `Ada founded Acme` says `Acme founded_by Ada`.
"""

from typing import NamedTuple

from indexer.extraction.lexicon import word_set

# Lemma, or lemma and preposition → predicate.
_TYPED = {
    "uses": "use|utilise|utilize|leverage|make use of",
    "requires": "require|need",
    "depends_on": "depend on|depend upon|rely on|rely upon",
    "builds_on": "build on|build upon|build atop",
    "replaces": "replace|supersede|obsolete",
    "extends": "extend|inherit from|subclass",
    "implements": "implement",
    "explains": "explain",
    "owns": "own",
    "^part_of": "consist of|comprise",
    "part_of": "belong to",
    "maintains": "maintain",
    "leads": "lead|head|chair|captain",
    "manages": "manage|oversee|supervise",
    "operates": "operate",
    "works_for": "work for",
    "^works_for": "employ|hire",
    "reports_to": "report to",
    "member_of": "join",
    "produces": "produce|generate|manufacture|emit",
    "provides": "provide|offer",
    "supports": "support",
    "handles": "handle|process",
    "runs_on": "run on|run in|run atop|run inside",
    "listens_on": "listen on|listen at",
    "connects_to": "connect to",
    "reads_from": "read from",
    "writes_to": "write to",
    "located_in": "lie in|reside in|situate in",
    "lives_in": "live in",
    "^founded_by": "found|co-found|cofound|establish",
    "^created_by": "create",
    "^designed_by": "design",
    "^developed_by": "develop",
    "^invented_by": "invent",
    "^discovered_by": "discover",
    "^written_by": "write|author|pen",
    "^directed_by": "direct",
    "^composed_by": "compose",
    "^built_by": "build|construct",
    "^published_by": "publish",
    "acquires": "acquire|buy|purchase",
    "married_to": "marry",
    "plays_for": "play for",
    "studied_at": "study at|attend|graduate from",
    "derived_from": "derive from",
    "follows": "follow",
    "succeeds": "succeed",
    "contains": "contain",
    "causes": "cause|lead to|result in",
    "reduces": "reduce|decrease",
    "increases": "increase",
    "prevents": "prevent",
    "measures": "measure",
    "supplies": "supply",
    "pays_for": "pay for",
    "mentions": "mention",
    "meets": "meet|meet with",
    "student_of": "study under|train under",
    "mentors": "mentor|coach",
    "works_on": "work on",
    "moves_to": "move to|relocate to",
    "also_known_as": "stand for",
}
# Passive verb and preposition → predicate; `by` turns the active one round.
_TYPED_PASSIVE = {
    "prerequisite_of": "require for",
    "builds_on": "base on|base upon|build on|build upon|build atop|build with",
    "located_in": "locate in|locate at|locate on|situate in|situate on|base in|headquarter in|base at",
    "runs_on": "host on|host by|host in|deploy on|deploy to|run on",
    "written_in": "write in|implement in",
    "stored_in": "store in|keep in|save in",
    "held_in": "hold in|hold at",
    "part_of": "include in|bundle with",
    "works_for": "employ by|employ at",
    "born_in": "bear in|bear at",
    "died_in": "die in",
    "named_after": "name after|name for",
    "also_known_as": "know as|abbreviate as|abbreviate to",
    "renamed_to": "rename to|rename as|rename",
    "derived_from": "derive from|fork from",
    "released_in": "release in|release on|launch in|launch on|publish in|publish on",
    "founded_in": "found in|establish in|form in",
    "created_in": "create in|invent in|introduce in|design in|develop in",
    "built_in": "build in|construct in",
}
# Verbs whose own third person is the predicate; with a preposition both. Forms are regular but for _IRREGULAR.
_COMMON = word_set(
    """accept access acknowledge activate adopt advise aggregate allocate announce appoint approve archive assign
    attack audit authenticate authorise authorize award ban batch bind block border broadcast buffer cache call
    cancel capture check clean clear collect combine command commit compile compress compute condemn configure
    connect consume contain control convert coordinate copy cover criticise criticize declare decode decrypt
    defeat define delegate delete deliver deploy deprecate describe detect disable discover dispatch display
    distribute divide download drive drop edit elect embed enable encode encrypt enforce enrich evaluate exclude
    execute export expose fetch filter finance flush format forward frame fund govern group guarantee guard
    guide hash house implement include index influence inform inhabit initialise initialize inject
    inspect inspire install integrate introduce invoke issue launch license limit link list load locate lock log
    maintain map match merge migrate mirror monitor mount move normalise normalize notify occupy open operate
    orchestrate organise organize oversee own package parse partition patch persist poll populate power print
    process promote propose protect proxy publish pull push query queue rank rebuild recommend record redirect
    register regulate reject release remove rename render repair replicate represent reset resolve restart
    restore retry rewrite route sample scan schedule scrape secure sell send separate serve share ship sign
    specify split sponsor stop store stream submit subscribe supply surrender surround sync synchronise
    synchronize tag target teach terminate test track train transfer transform translate trigger update upgrade
    upload validate verify win wrap
    absorb adjust advise affect analyse analyze arrange assemble assess assist attract boost bottle calculate calibrate
    charge charter choose coach collect compare compile connect consult cool correct cultivate damage dissolve
    donate drain dry eat elect emit employ endanger exceed exchange extract feed ferment fit form freeze gather grind
    guard guide harm harvest heat heal host illustrate import improve infect inhibit inherit interview invite irrigate
    judge kill lease light limit lubricate manufacture melt modify neutralise nourish observe obtain organise outsource
    paint pave perform photograph pick plant pollinate power practise predict preserve purchase pursue quote recruit
    recycle refine rent restrict review roast sample scare seal shape simplify smoke solve stabilise steer stimulate
    strengthen study subsidise substitute succeed supervise surround sustain sweeten switch train translate treat tune
    visit wash weaken weld withstand write yield"""
)
_ACTIVE_ONLY = word_set("join follow lie reside stand marry attend")
_PREPOSITIONS = word_set("on in to for from with at by of upon after into through as over atop inside under via")
_COMMON_WITH_PREPOSITION = {
    "belong to", "communicate with", "compete in", "converge to", "correspond to", "differ from", "flow into",
    "flow through", "flows to", "integrate with", "interact with", "listen to", "live in", "map to", "migrate to",
    "move to", "move from", "participate in", "play in", "publish to", "reply to", "respond to", "serve in", "serve as",
    "serve on", "specialise in", "specialize in", "subscribe to", "switch to", "talk to", "teach at", "trade with",
    "send to", "deliver to", "live on", "feed on", "grow on", "grow in", "end at", "end in", "begin at", "start at",
    "lead into", "speak to", "speak with", "argue with", "study under", "train under", "train with", "sit on",
    "wait for",
    "care for", "look after", "deal with", "comply with", "connect with", "link to", "attach to", "contribute to",
    "refer to", "point to", "react with", "compete with", "collaborate with", "partner with", "invest in", "sail to",
    "travel to", "walk to", "settle in", "arrive in", "arrive at", "hang in", "stand in", "stand on",
    "star in", "appear in", "retire from", "evolve into", "evolve from",
    "originate in", "originate from", "merge with", "merge into", "translate to", "compile to", "ship with",
    "work at", "work with", "apply to", "export to", "import from", "fetch from", "report on", "preside over",
    "act as", "work in", "work under", "work from", "meet in", "meet at", "operate in", "operate from", "fight in",
}  # fmt: skip
_IRREGULAR = {
    "be": "is was been", "bear": "bears bore born", "become": "becomes became become", "bind": "binds bound bound",
    "choose": "chooses chose chosen", "draw": "draws drew drawn", "eat": "eats ate eaten", "feed": "feeds fed fed",
    "freeze": "freezes froze frozen", "grind": "grinds ground ground", "grow": "grows grew grown",
    "hang": "hangs hung hung", "light": "lights lit lit", "sit": "sits sat sat", "speak": "speaks spoke spoken",
"bring": "brings brought brought", "build": "builds built built", "buy": "buys bought bought",
    "do": "does did done", "drive": "drives drove driven", "fight": "fights fought fought",
    "find": "finds found found", "have": "has had had", "hold": "holds held held", "keep": "keeps kept kept",
    "know": "knows knew known", "lead": "leads led led", "leave": "leaves left left", "lie": "lies lay lain",
    "make": "makes made made", "meet": "meets met met", "oversee": "oversees oversaw overseen", "pay": "pays paid paid",
    "read": "reads read read", "rebuild": "rebuilds rebuilt rebuilt", "reset": "resets reset reset",
    "rewrite": "rewrites rewrote rewritten", "run": "runs ran run", "sell": "sells sold sold",
    "send": "sends sent sent", "shut": "shuts shut shut", "split": "splits split split",
    "stand": "stands stood stood", "teach": "teaches taught taught", "win": "wins won won",
    "write": "writes wrote written",
}  # fmt: skip
_DOUBLED = word_set("ban commit control drop embed log map refer scan ship stop submit tag transfer wrap")

# Nouns between two ends: `the capital of`, `a subsidiary of`; predicate of (X, Y) in `X is the noun of Y`.
_NOUNS = {
    "leads": "head|lead|leader|chief executive|ceo|cto|cfo|president|prime minister|chairman|chairwoman|chair|director"
    "|captain|king|queen|mayor|governor|manager|coach|principal|premier|chancellor",
    "owns": "owner",
    "maintains": "maintainer|custodian",
    "^founded_by": "founder|co-founder|cofounder",
    "^created_by": "creator",
    "^designed_by": "designer|architect",
    "^developed_by": "developer",
    "^invented_by": "inventor",
    "^discovered_by": "discoverer",
    "^written_by": "author|writer",
    "^composed_by": "composer",
    "part_of": "part|component|module|subset|division|department|branch|section|feature|suburb|district|chapter",
    "^part_of": "superset|parent",
    "subsidiary_of": "subsidiary",
    "member_of": "member",
    "capital_of": "capital|capital city|county seat|seat",
    "replaces": "successor|replacement",
    "^replaces": "predecessor",
    "depends_on": "dependent",
    "^depends_on": "dependency|prerequisite|precondition|requirement",
    "implements": "implementation",
    "extends": "extension|subclass|generalisation|generalization|superclass",
    "specialization_of": "specialisation|specialization|special case",
    "variant_of": "variant|variation",
    "derived_from": "fork|derivative|port|clone|adaptation",
    "child_of": "son|daughter|child",
    "^child_of": "father|mother",
    "sibling_of": "brother|sister|sibling",
    "married_to": "wife|husband|spouse|widow",
    "also_known_as": "synonym|alias|abbreviation|acronym|short form",
    "student_of": "student|pupil",
    "native_of": "native|citizen",
}
NOUN_PREPOSITIONS = word_set("of to for")
# Fixed phrases after a form of `be`.
_ADJECTIVES = {
    "responsible for": "responsible_for",
    "in charge of": "leads",
    "dependent on": "depends_on",
    "equivalent to": "equivalent_to",
    "compatible with": "compatible_with",
    "part of": "part_of",
    "home to": "home_to",
    "member of": "member_of",
    "native to": "native_to",
    "successor to": "replaces",
    "named after": "named_after",
    "short for": "also_known_as",
}
_PLAIN_ADJECTIVES = {  # `common_in`
    "for": "known famous noted essential suitable useful eligible",
    "in": "common widespread abundant rare present available active popular rich involved",
    "to": "similar identical close adjacent related equal subject vulnerable resistant sensitive endemic unique",
    "of": "north south east west northeast northwest southeast southwest independent",
    "from": "available different separate absent distinct",
}


class Relation(NamedTuple):
    """A predicate, whether its ends change places, and whether it is one of the typed ones."""

    predicate: str
    is_inverse: bool = False
    is_typed: bool = True


class VerbForm(NamedTuple):
    """What a written form may be of a lemma: `is_base`, `is_third` (person), `is_past`, `is_participle`."""

    lemma: str
    is_base: bool
    is_third: bool
    is_past: bool
    is_participle: bool


def _relation(named: str) -> Relation:
    return Relation(named.removeprefix("^"), named.startswith("^"))


def _by_phrase(table: dict[str, str]) -> dict[str, Relation]:
    return {phrase: _relation(named) for named, phrases in table.items() for phrase in phrases.split("|")}


def third_person(lemma: str) -> str:
    """`uses`, `passes`, `relies`."""
    if lemma in _IRREGULAR:
        return _IRREGULAR[lemma].split()[0]
    if lemma.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{lemma}es"
    return f"{lemma[:-1]}ies" if lemma.endswith("y") and lemma[-2] not in "aeiou" else f"{lemma}s"


def past_forms(lemma: str) -> tuple[str, str]:
    """(past, past participle)."""
    if lemma in _IRREGULAR:
        _, past, participle = _IRREGULAR[lemma].split()
        return past, participle
    if lemma.endswith("e"):
        form = f"{lemma}d"
    elif lemma.endswith("y") and lemma[-2] not in "aeiou":
        form = f"{lemma[:-1]}ied"
    else:
        form = f"{lemma}{lemma[-1]}ed" if lemma in _DOUBLED else f"{lemma}ed"
    return form, form


# Verbs that relate what follows the preposition after their object: `buys its oats from Tarn Farm`.
_BEYOND_OBJECT = {
    "from": "buy purchase get receive import obtain borrow lease rent order source take draw read fetch collect",
    "to": """send deliver supply sell export give lend ship pass forward write award report move transfer publish donate
        leave bring offer attach connect link add hand teach show rent lease assign map outsource subcontract lose
        bequeath entrust dedicate devote restore return refer distribute contribute pay grant forward deliver""",
    "at": "study teach read sell buy",
    "in": "store keep save put hold record write cache",
    "on": "store keep save put run host",
    "with": "share replace exchange combine connect",
}
BEYOND_OBJECT = {
    (third_person(verb), preposition): f"{third_person(verb)}_{preposition}"
    for preposition, verbs in _BEYOND_OBJECT.items()
    for verb in verbs.split()
} | {("acquires", "from"): "buys_from"}
ACTIVE = _by_phrase(_TYPED)
PASSIVE = _by_phrase(_TYPED_PASSIVE)
NOUNS = _by_phrase(_NOUNS)
ADJECTIVES = {tuple(phrase.split()): _relation(named) for phrase, named in _ADJECTIVES.items()}
PLAIN_ADJECTIVES = {
    f"{adjective} {preposition}": Relation(f"{adjective}_{preposition}", is_typed=False)
    for preposition, adjectives in _PLAIN_ADJECTIVES.items()
    for adjective in adjectives.split()
}
# Verbs with two objects: `lends the town a bell`; `sells Ben the mill`. Verbs of an object and what it becomes.
GIVING = word_set("gives provides lends sells teaches sends awards grants pays brings hands leaves promises leases")
NAMING = word_set("appoints elects names calls declares makes crowns")
_LEMMAS = _COMMON | {phrase.split()[0] for phrase in (*ACTIVE, *PASSIVE, *_COMMON_WITH_PREPOSITION)} - {"flows"}


def _forms() -> dict[str, tuple[VerbForm, ...]]:
    forms: dict[str, list[VerbForm]] = {}
    for lemma in sorted(_LEMMAS):
        third, (past, participle) = third_person(lemma), past_forms(lemma)
        for form in sorted({lemma, third, past, participle}):
            verb = VerbForm(lemma, form == lemma, form == third, form == past, form == participle)
            forms.setdefault(form, []).append(verb)
    # A form of two lemmas: `found` is of `found` and not of the absent `find`; `lay` and others are rare.
    return {form: tuple(verbs) for form, verbs in forms.items()}


VERB_FORMS = _forms()
THIRD_PERSONS = frozenset(form for form, verbs in VERB_FORMS.items() if any(verb.is_third for verb in verbs))


def active_relation(lemma: str, preposition: str) -> Relation | None:
    """The relation of `lemma` with a preposition, or without one where that is empty; None if it states none."""
    phrase = f"{lemma} {preposition}".rstrip()
    if phrase in ACTIVE:
        return ACTIVE[phrase]
    if not preposition:
        return Relation(third_person(lemma), is_typed=False) if lemma in _COMMON else None
    if phrase in _COMMON_WITH_PREPOSITION:
        return Relation(f"{third_person(lemma)}_{preposition}", is_typed=False)
    return None


def passive_relation(lemma: str, preposition: str) -> Relation | None:
    """The relation of `is <participle> <preposition>`; after `by` that of the active verb, turned round."""
    phrase = f"{lemma} {preposition}".rstrip()
    if phrase in PASSIVE:
        return PASSIVE[phrase]
    if not preposition:
        return None
    if preposition == "by" and lemma in _ACTIVE_ONLY:
        return None
    if preposition == "by":
        active = active_relation(lemma, "")
        return active and active._replace(is_inverse=not active.is_inverse)
    if preposition in _PREPOSITIONS - {"for", "as", "of"} and lemma in _LEMMAS:
        return Relation(f"{past_forms(lemma)[1]}_{preposition}", is_typed=False)
    return None
