"""A conversation outlives the service, and goes on from another client; what is deleted stays deleted."""

from pathlib import Path

import httpx
import pytest

from query_api.client import NotFound
from schemas.frames import Done
from schemas.topics import TopicNames
from tests.support.kafka import read_all
from tests.support.processes.installation import HASHING, READY_SECONDS, Installation, installation
from tests.support.waiting import wait_until
from thalweg import Client

DOCUMENTS = [
    {"id": "weir.md", "collection": "orsa", "content": "# Weir\n\nThe weir at Orsa was built by Ada Holm in 1886."},
    {"id": "lock.md", "collection": "orsa", "content": "# Lock\n\nThe lock at Orsa was built by Bo Lind in 1901."},
    {"id": "mill.md", "collection": "mora", "content": "# Mill\n\nThe mill at Mora was built by Eva Berg in 1850."},
]


def saved(running: Installation) -> dict[bytes, bytes | None]:
    """The newest record of each key of the topic."""
    names = TopicNames("thalweg.")
    return {record.key: record.value for record in read_all(running.kafka, names.saved)}


def is_ready(running: Installation) -> bool:
    try:
        return httpx.get(f"{running.url}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.timeout(600)
def test_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    with installation(tmp_path / "data", **HASHING) as running:
        with Client(running.url) as client:
            token = client.publish(DOCUMENTS).token
            client.search("Orsa", after=token, wait_seconds=60)
            begun = client.begin_conversation(collection="orsa")
            first = client.ask("Who built the weir at Orsa?", conversation=begun.id)
            assert first.query == "Who built the weir at Orsa?"
            running.run("ask", "and in which year?", "--conversation", begun.id)
        killed = running.child("serve")
        killed.kill()
        killed.wait(30)
        wait_until(lambda: is_ready(running), "another service is ready", READY_SECONDS)
        with Client(running.url) as client:
            found = client.conversation(begun.id)
            texts = [message.text for message in found.messages if message.role == "user"]
            assert texts == ["Who built the weir at Orsa?", "and in which year?"]
            assert found.messages[1].answer == first
            assert found.messages[3].answer is not None
            assert found.messages[3].answer.query == "and in which year? built weir Orsa"
            last = list(client.stream("What about the lock?", conversation=begun.id))[-1]
            assert isinstance(last, Done)
            assert last.answer is not None
            assert last.answer.query == "What about the lock? built weir Orsa year"
            assert {each.collection for each in last.answer.citations} <= {"orsa"}
            assert client.rename_conversation(begun.id, "Orsa").message_count == 6
            assert [each.title for each in client.conversations().conversations] == ["Orsa"]
            client.delete_conversation(begun.id)
            with pytest.raises(NotFound, match="was deleted"):
                client.ask("Who built it?", conversation=begun.id)
        assert set(saved(running).values()) == {None}
    with installation(tmp_path / "data", **HASHING) as again, Client(again.url) as client:
        assert client.conversations().conversations == []
        topics = again.run("topics").stdout
        assert "thalweg.saved.v1: exists, 1 partition\n" in topics
