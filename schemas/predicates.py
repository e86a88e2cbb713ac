"""How strongly each predicate joins the two ends of a statement, before anybody has weighed it.

The scale, from 1 for what the two have in common altogether to .3 for what only occurs together:

- 1: the same thing, or its kind;
- .95: a part and its whole;
- .9: one cannot be understood, run or dated without the other;
- .85: one works with the other;
- .8: who made it, answers for it, or belongs to it; what fulfils it;
- .75: one comes out of the other, or has its place, work or family there;
- .6: one episode or side of the one;
- .5: a subject that they share;
- .3: a label or a time that many have, and predicates that are not listed here: verbs that state that something
  happens between two (`announces`, `elected_to`), fields of other names, what a language model calls it.
"""

from typing import Final

UNLISTED_STRENGTH: Final = 0.3
ALIAS: Final = "also_known_as"
IS_A: Final = "is_a"
STRENGTH_STEP: Final = 0.1  # more for each further statement of a fact, up to 1

NAMED_FIRST = (
    "is_a", "subtopic_of", "part_of", "specialization_of", "prerequisite_of", "depends_on", "requires", "replaces",
    "explains", "uses", "implements", "extends", "builds_on", "related_to", "mentioned_in",
)  # fmt: skip
"""Those that a language model is asked to use where they fit."""

_BY_STRENGTH = {
    1.0: "is_a subtopic_of also_known_as equivalent_to renamed_to",
    0.95: "part_of belongs_to component parent subsidiary_of contains",
    0.9: """specialization_of variant_of prerequisite_of depends_on requires explains replaces replaced_by
        superseded_by supersedes
        obsoletes obsoleted_by updates updated_by amends amended_by succeeds successor predecessor capital_of""",
    0.85: """uses used_by runs_on written_in stored_in hosted_on hosted_by connects_to reads_from writes_to platform""",
    0.8: """implements created_by designed_by developed_by invented_by discovered_by written_by directed_by composed_by
        built_by published_by founded_by produced_by owns owned_by maintains maintained_by leads manages managed_by
        operates acquires member_of responsible_for author creator founder composer director owner owners maintainer
        lead manager publisher""",
    0.75: """causes supplies works_on mentors extends builds_on derived_from produces provides located_in
        headquarters works_for plays_for reports_to
        child_of sibling_of married_to student_of native_of home_to team teams organisation organization company
        department group project product program service series""",
    0.6: """reduces increases prevents measures pays_for meets introduced_to moves_to
        named_after lives_in held_in born_in died_in studied_at supports handles compatible_with native_to
        listens_on follows contributor editor translator reviewer reviewers reviewed_by sponsor delegate assignee
        approver approvers approved_by decider deciders consulted informed accountable responsible reporter contact
        cast customer client supplier vendor stakeholder stakeholders city country region location venue journal
        repository channel""",
    0.5: "related_to related see_also topic subject keyword tag category genre domain industry area kind type",
    0.3: """mentions mentioned_in status state stage phase severity priority tier environment audience language
        license licence
        python_version version
        release since year date born_on died_on founded_in created_in built_in opened_in released_in born died founded
        opened created created_at published published_at released release_date updated updated_at modified decided
        decision_date effective_date expires last_modified last_updated lastmod""",
}

PREDICATE_STRENGTHS: dict[str, float] = {
    predicate: strength for strength, predicates in _BY_STRENGTH.items() for predicate in predicates.split()
}


def predicate_strength(predicate: str) -> float:
    """From 0 to 1; UNLISTED_STRENGTH for one that is not listed."""
    return PREDICATE_STRENGTHS.get(predicate, UNLISTED_STRENGTH)


def fact_strength(base: float, times: int) -> float:
    """Of a fact that is stated so often: many documents repeat what holds."""
    return round(min(1.0, base + STRENGTH_STEP * (times - 1)), 3)


ONE_OBJECT = {
    "owner": "owner", "owned_by": "owner", "accountable": "accountable", "reports_to": "reports_to",
    "subsidiary_of": "parent company", "capital_of": "capital_of", "headquarters": "headquarters", "born_in": "born_in",
    "died_in": "died_in", "born_on": "born_on", "born": "born_on", "died_on": "died_on", "died": "died_on",
    "founded_in": "founded_in", "founded": "founded_in", "built_in": "built_in", "opened_in": "opened_in",
    "license": "license", "licence": "license", "is_a": "kind",
}  # fmt: skip
"""Predicates of which a subject has one object: {predicate: what that is}."""
ONE_SUBJECT = {"owns": "owner", "capital_of": "capital"}
"""Those of which an object has one subject."""
