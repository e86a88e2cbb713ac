"""Two installations on one machine: commands act on the one whose data directory is named, or on none."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from indexer.generation_folders import LogIdentity, current_generation, record_log
from kafka_client.sync_clients import AdminClient
from schemas.errors import Exit
from schemas.runtime import Running, WorkerState, announce, find_running, installation_of, write_state
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.topics import ensure_topics
from tests.support.fakes.engine import make_generation
from tests.support.kafka import plaintext, read_all
from tests.support.processes.query_service import service_process
from tests.support.waiting import wait_until


def thalweg(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thalweg", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


@pytest.mark.parametrize(
    "command",
    [
        "load {folder}/note.md",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in ("delete a", "topics --create", "verify --repair --document default/a")
        ),
    ],
)
def test_command_for_stores_of_another_log_writes_nothing(
    command: str, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    """As where the port of a Kafka that has ended was taken by another installation's."""
    settings = KafkaSettings(topic_prefix=topic_prefix)
    asyncio.run(ensure_topics(plaintext(kafka), topic_specs(settings)))
    folder = tmp_path / "mine"
    make_generation(folder)
    generation = current_generation(folder)
    assert generation is not None
    record_log(generation, LogIdentity("d" * 32, "e" * 32))
    write_state(folder, WorkerState(at_ms=2**53, phase="running"))
    announce(folder, Running(pid=os.getpid(), kafka=kafka))
    (tmp_path / "note.md").write_text("The river is high.")

    given = command.format(folder=tmp_path).split()
    refused = thalweg(*given, "--data-dir", str(folder), THALWEG_KAFKA__TOPIC_PREFIX=topic_prefix)

    assert refused.returncode == Exit.FAILED, refused.stderr
    assert "filled from another log" in refused.stderr
    names = TopicNames(topic_prefix)
    assert read_all(kafka, names.documents) == read_all(kafka, names.curation) == []
    with closing(AdminClient(plaintext(kafka))) as admin:
        assert [name for name in admin.list_topics() if names.is_contributions(name)] == []


@pytest.mark.nightly  # of announcements alone: unit tests of `schemas/runtime` and of commands on folders
def test_service_is_found_by_its_folder_until_it_ends(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    with service_process(mine) as service, service_process(theirs) as other:
        for folder in (mine, theirs):
            status = thalweg("status", "--json", "--data-dir", str(folder))
            assert f'"data_dir": "{folder}"' in status.stdout
            assert f'"installation": "{installation_of(folder)}"' in status.stdout

        announce(mine, Running(pid=os.getpid(), service_url=other.url))  # 'thalweg up', whose service's port is taken
        refused = thalweg("collections", "delete", "default", "--yes", "--data-dir", str(mine))
        assert refused.returncode == Exit.UNREACHABLE
        assert "another installation answers" in refused.stderr
        (mine / "running.json").unlink()

        service.process.send_signal(signal.SIGKILL)
        wait_until(lambda: find_running(mine) is None, "what was killed is no longer believed")
        refused = thalweg("status", "--data-dir", str(mine))
        assert refused.returncode == Exit.UNREACHABLE
        assert f"thalweg up --data-dir {mine}" in refused.stderr
    wait_until(lambda: find_running(theirs) is None, "the other has withdrawn its announcement")
    assert not list(theirs.glob("running*"))
