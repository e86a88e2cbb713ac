"""Facts of verbs: who does what, turned round, shared, and what is no fact."""

import pytest

from indexer.extraction.prose.clauses import clause_facts, is_factual
from indexer.extraction.prose.noun_phrases import words_of

Triples = list[tuple[str, str, str]]


def facts(sentence: str) -> Triples:
    words = words_of(sentence, 0, len(sentence))
    return [(one.subject, one.predicate, one.object) for one in clause_facts(words)] if is_factual(words) else []


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Team Heron owns Marsh.", [("Team Heron", "owns", "Marsh")]),
        ("The crawler needs Redis 7 or later.", [("crawler", "requires", "Redis 7")]),
        ("The report builder relies on the metrics store.", [("report builder", "depends_on", "metrics store")]),
        ("Refunds are processed by the Cashier service.", [("Cashier service", "handles", "Refunds")]),
        (
            "Acme was founded by Ann Bell and Bo Chan.",
            [("Acme", "founded_by", "Ann Bell"), ("Acme", "founded_by", "Bo Chan")],
        ),
        ("Ann Bell founded Acme.", [("Acme", "founded_by", "Ann Bell")]),
        ("Marsh has been replaced by Delta.", [("Delta", "replaces", "Marsh")]),
        ("The console is now running on Nomad.", [("console", "runs_on", "Nomad")]),
        ("The console runs on port 9000.", [("console", "runs_on", "port 9000")]),
        ("Marsh is part of the Wetland suite.", [("Marsh", "part_of", "Wetland suite")]),
        ("Ann Bell is responsible for the billing system.", [("Ann Bell", "responsible_for", "billing system")]),
        ("Marsh 3 was released in May 2021.", [("Marsh 3", "released_in", "May 2021")]),
        ("The stack consists of a proxy and a queue.", [("proxy", "part_of", "stack"), ("queue", "part_of", "stack")]),
        (
            "Marsh supports Linux, macOS and Windows.",
            [("Marsh", "supports", "Linux"), ("Marsh", "supports", "macOS"), ("Marsh", "supports", "Windows")],
        ),
        ("Heron and Marsh use Delta.", [("Heron", "uses", "Delta"), ("Marsh", "uses", "Delta")]),
        ("All traces are stored in Jaeger.", [("traces", "stored_in", "Jaeger")]),
        ("Marsh was audited by Norse Labs.", [("Norse Labs", "audits", "Marsh")]),
        ("Marsh was bespangled by Norse Labs.", [("Marsh", "bespangled_by", "Norse Labs")]),
    ],
)
def test_a_plain_sentence_states_its_fact(sentence: str, expected: Triples) -> None:
    assert facts(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "Marsh, which is owned by Team Heron, uses Delta.",
            [("Team Heron", "owns", "Marsh"), ("Marsh", "uses", "Delta")],
        ),
        (
            "Marsh, maintained by Team Heron, uses Delta.",
            [("Team Heron", "maintains", "Marsh"), ("Marsh", "uses", "Delta")],
        ),
        (
            "Marsh is owned by Ann Bell and runs on Nomad.",
            [("Ann Bell", "owns", "Marsh"), ("Marsh", "runs_on", "Nomad")],
        ),
        (
            "Marsh is a film directed by Ann Bell and written by Bo Chan.",
            [("Marsh", "is_a", "film"), ("Marsh", "directed_by", "Ann Bell"), ("Marsh", "written_by", "Bo Chan")],
        ),
        (
            "Marsh is an arcade game by Heron Inc., released on May 13, 1976.",
            [
                ("Marsh", "is_a", "arcade game"),
                ("Marsh", "created_by", "Heron Inc."),
                ("Marsh", "released_in", "May 13, 1976"),
            ],
        ),
        ("The ballot proposed here is supported by Ann Bell.", [("Ann Bell", "supports", "ballot")]),
        ("Marsh is a novel written by Ann Bell.", [("Marsh", "is_a", "novel"), ("Marsh", "written_by", "Ann Bell")]),
        ("The office in Kiel uses Delta.", [("office", "uses", "Delta")]),
        ("Although it is old, Marsh still uses Delta.", [("Marsh", "uses", "Delta")]),
        ("Note that Marsh requires Delta.", [("Marsh", "requires", "Delta")]),
        (
            "Ann Bell joined Acme in 2020, and the crawler requires Redis.",
            [("Ann Bell", "member_of", "Acme"), ("crawler", "requires", "Redis")],
        ),
    ],
)
def test_the_subject_may_stand_elsewhere(sentence: str, expected: Triples) -> None:
    assert facts(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Marsh does not use Delta.",
        "Marsh never uses Delta.",
        "Marsh is not owned by Ann Bell.",
        "Marsh no longer uses Delta.",
        "Marsh may use Delta.",
        "Marsh will be replaced by Delta.",
        "If Marsh uses Delta, Heron requires Redis.",
        "When Marsh uses Delta.",
        "Does Marsh use Delta?",
        "Use Delta for Marsh.",
        "We say that Marsh uses Delta.",
        "They use Delta.",
        "This requires Delta.",
        "Marsh uses no Delta.",
        "Calling Marsh requires Delta.",
        "Marsh designs continue to sell.",
        "Marsh requires help.",
        "Services that use Delta are slow.",
        "The thing uses the approach.",
        "In Kiel, devised by Ann Bell, it rained.",
        "The TC establishes overall policies.",
        "Lund is known as a lively town.",
        "",
        ".",
    ],
)
def test_what_is_not_stated_is_no_fact(sentence: str) -> None:
    assert facts(sentence) == []


def test_a_name_counts_more_than_a_definite_phrase_and_a_listed_verb_more_than_another() -> None:
    def confidence(sentence: str) -> float:
        [one] = clause_facts(words_of(sentence, 0, len(sentence)))
        return one.confidence

    assert confidence("Heron uses Delta.") == 0.8
    assert confidence("The crawler uses Delta.") == 0.7
    assert confidence("Heron monitors Delta.") == 0.5


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Turbines require a foundation.", [("Turbines", "requires", "foundation")]),
        ("Tugs and barges use marine oil.", [("Tugs", "uses", "marine oil"), ("barges", "uses", "marine oil")]),
        ("Ground frost causes poor grip.", [("Ground frost", "causes", "poor grip")]),
        ("Relief printing relies on raised type.", [("Relief printing", "depends_on", "raised type")]),
        ("In short, gardeners need sharp spades.", [("gardeners", "requires", "sharp spades")]),
        ("A storm drain requires a steel grate.", [("storm drain", "requires", "steel grate")]),
        ("Herons are wading birds.", []),  # a copula, see `test_copulas`
    ],
)
def test_bare_subject_that_opens_a_sentence_is_a_kind(sentence: str, expected: Triples) -> None:
    assert [fact for fact in facts(sentence) if fact[1] != "is_a"] == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The heron stalks the frog.", [("heron", "stalks", "frog")]),
        ("Reed warblers weave their long nests.", [("Reed warblers", "weaves", "long nests")]),
        ("Ada Moss has groomed the grey pony.", [("Ada Moss", "grooms", "grey pony")]),
        ("Ada Moss is grooming the grey pony.", [("Ada Moss", "grooms", "grey pony")]),
        ("The grey pony is groomed by Ada Moss.", [("grey pony", "groomed_by", "Ada Moss")]),
        ("The hall was paid for by the Moss estate.", [("hall", "paid_for_by", "Moss estate")]),
        ("Rollmax banks with Credit Alvar.", [("Rollmax", "banks_with", "Credit Alvar")]),
        ("The key safe is guarded by two brass locks.", [("brass locks", "guards", "key safe")]),
        (
            "Ada Moss buys her oats from Tarn Farm.",
            [("Ada Moss", "buys_from", "Tarn Farm"), ("Ada Moss", "acquires", "oats")],
        ),
        ("Ada introduced Ben to Cora Lund.", [("Ben", "introduced_to", "Cora Lund"), ("Ada", "introduces", "Ben")]),
        ("The stable stands next to the tide mill.", [("stable", "stands_next_to", "tide mill")]),
        ("Ada Moss grew up in Tarn.", [("Ada Moss", "grows_up_in", "Tarn")]),
        ("The geese were driven out of the lower field.", [("geese", "driven_out_of", "lower field")]),
        (
            "Marsh rats dig burrows under the boardwalk.",
            [("Marsh rats", "digs_under", "boardwalk"), ("Marsh rats", "digs", "burrows")],
        ),
        ("The dairy filters its milk through a ceramic sieve.", [("dairy", "filters_through", "ceramic sieve")]),
        ("The glaze calls for quince jelly.", [("glaze", "calls_for", "quince jelly")]),
        ("The plans were drawn up to build a mill.", []),
        ("Crushed eggshell deters slugs.", [("Crushed eggshell", "deters", "slugs")]),
        ("The loan financed the pasteuriser.", [("loan", "finances", "pasteuriser")]),
        ("Precise line numbers for debugging.", []),
        (
            "Agents and browsers hold long loans.",
            [("Agents", "holds", "long loans"), ("browsers", "holds", "long loans")],
        ),
        (
            "The Tarn mill made an estimate and the guild engaged the old miller.",
            [("Tarn mill", "makes", "estimate"), ("guild", "engages", "old miller")],
        ),
        (
            "Marsh builds on the old ledger and on the tide tables.",
            [("Marsh", "builds_on", "old ledger"), ("Marsh", "builds_on", "tide tables")],
        ),
    ],
)
def test_verb_of_no_list_states_its_third_person(sentence: str, expected: Triples) -> None:
    assert facts(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Push messages arrive late.",
        "The grey pony needs to rest.",
        "Had Ada married Ben, the mill would be hers.",
        "Allegedly the chapel was built by sailors.",
        "There is a good court behind the library.",
        "The config files the server reads are short.",
    ],
)
def test_noun_that_looks_like_a_verb_states_nothing(sentence: str) -> None:
    assert facts(sentence) == []


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Lady Anne gave the chapel its bell.", [("Lady Anne", "gives", "bell"), ("Lady Anne", "gives_to", "chapel")]),
        ("Marsh offers Ann the prize.", [("Marsh", "provides", "prize"), ("Marsh", "provides_to", "Ann")]),
        ("The board appointed Ann Bell treasurer.", [("board", "appoints", "Ann Bell")]),
        ("Marsh gave the client an older, slower pump.", []),
        ("Marsh provides Tern that pumps water.", [("Marsh", "provides", "Tern")]),
    ],
)
def test_verb_with_two_objects_gives_the_second(sentence: str, expected: Triples) -> None:
    assert facts(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "The extract is imported from Moldova by Herbapol East.",
            [("Herbapol East", "imports", "extract"), ("extract", "imported_from", "Moldova")],
        ),
        ("The abbey was founded in 1140 by Ann Bell.", [("abbey", "founded_by", "Ann Bell")]),
        ("The hall is currently run by the Falk family.", [("hall", "run_by", "Falk family")]),
        ("Backups get copied to the Narvik vault.", [("Backups", "copied_to", "Narvik vault")]),
        ("Tamar Voss has long been linked to the Oru trust.", [("Tamar Voss", "linked_to", "Oru trust")]),
        ("Wind sensors are wired to junction boxes.", [("Wind sensors", "wired_to", "junction boxes")]),
        ("The kettle is designed to trap heat.", []),
    ],
)
def test_passive_names_who_does_it_wherever_by_follows(sentence: str, expected: Triples) -> None:
    assert facts(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A tile stove burns wood pellets.", [("tile stove", "burns", "wood pellets")]),
        ("Insulin lowers blood sugar.", [("Insulin", "lowers", "blood sugar")]),
        ("The new board took over the hospital wing.", [("new board", "takes_over", "hospital wing")]),
        ("Ada Moss broke the Kiel record and sold the red boat.", ["breaks", "sells"]),
        ("Ada Moss was born and raised in Kiel.", []),
        ("Mount Alder lies north of the Gorse Valley.", [("Mount Alder", "lies_north_of", "Gorse Valley")]),
        ("Granite is harder than marble.", [("Granite", "harder_than", "marble")]),
        ("The fungus is common in beech woods.", [("fungus", "common_in", "beech woods")]),
        ("The harvest depends on the monsoon.", [("harvest", "depends_on", "monsoon")]),
        ("The delivery vans belong to a leasing company.", [("delivery vans", "part_of", "leasing company")]),
        ("Mrs. Pemberly owns Marsh.", [("Mrs. Pemberly", "owns", "Marsh")]),
        ("The nightly build requires Redis.", [("nightly build", "requires", "Redis")]),
        ("Morning fog delays the first ferry.", [("Morning fog", "delays", "first ferry")]),
        ("The change provides less scope.", []),
        ("The flag makes arrays take precedence.", []),
        ("The original unwrapped object keys remain.", []),
        ("Default values for function arguments", []),
    ],
)
def test_verb_is_told_from_the_nouns_beside_it(sentence: str, expected: list[object]) -> None:
    found = facts(sentence)
    assert (found if not expected or isinstance(expected[0], tuple) else [fact[1] for fact in found]) == expected
