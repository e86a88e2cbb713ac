"""Ordinary questions on a documentation site are answered by texts, questions about fields by fields."""

from concurrent.futures import Executor

import pytest

from tests.support.fakes.text_stores import world
from tests.unit.query_api.retrieval.asking import PAGES, ask
from tests.unit.query_api.retrieval.documentation_site import SITE


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("who wrote Tern", "history"),
        ("Who is the author of Tern?", "history"),
        ("When was Tern first given away?", "history"),
        ("Which licence is Tern under?", "licence"),
        ("May I sell Tern as a service?", "licence"),
        ("How fast is Tern on one core?", "benchmark"),
        ("What keeps strangers out of Tern?", "security"),
        ("Who elects the leader of a Cluster?", "failover"),
        ("How are keys spread over a Cluster?", "cluster"),
        ("What does a consumer group of a stream share?", "streams"),
        ("What type of licence is it?", "licence"),
        ("Which entry type does a stream return the id of?", "xadd"),
        ("What happens to a Snapshot of all keys?", "persistence"),
        ("How is a key set with Python?", "python-guide"),
        ("Where is a list chained?", "lists"),
        ("Which keys are evicted from Memory?", "memory"),
        ("What is the status of a replica whose leader is gone?", "replication"),
        ("Which programs speak to Tern?", "clients"),
    ],
)
async def test_an_ordinary_question_is_answered_by_a_text(executor: Executor, question: str, answer: str) -> None:
    hits = (await ask(world(SITE), executor, question, collection="site", group="document")).hits
    assert hits[0].document_id == f"{answer}.md"


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("status: accepted", {"replication", "failover"}),
        ("documents whose status is draft", {"cluster", "security"}),
        ("rejected pages", {"persistence"}),
        ("documents by Ann Lee from 2023", {"failover", "cluster"}),
        ("What did Ann Lee write?", {"failover", "cluster"}),
        ("accepted pages by Ann Lee", {"failover"}),
        ("pages with the linktitle Tern", {"index"}),
        ("group: list", {"lpush"}),
        ("pages tagged clients", {"clients", "python-guide"}),
        ("weight 91", {"licence"}),
        ("the page Streams in depth", {"streams"}),
        ("the page titled security", {"security"}),
        ("show the document called Lists", {"lists"}),
        ("pages of Bo Ek", {"streams", "python-guide"}),
        ("what was published in 2018?", {"licence"}),
    ],
)
async def test_a_question_about_fields_is_answered_by_them(
    executor: Executor, question: str, answers: set[str]
) -> None:
    hits = (await ask(world(SITE), executor, question, collection="site", group="document")).hits
    assert {hit.document_id.removesuffix(".md") for hit in hits[: len(answers)]} == answers


async def test_hit_found_by_its_id_is_named_by_the_question(executor: Executor) -> None:
    hits = (await ask(world(PAGES), executor, "What does document jane say of Alpha Film?")).hits
    (edge,) = next(hit.path for hit in hits if hit.document_id == "jane")
    assert (edge.edge, edge.target, edge.evidence) == ("names", "Jane Doe", "jane")
