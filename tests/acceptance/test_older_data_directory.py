"""A data directory that another version of the extractor made is refused; what the refusal says to type works."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.processes.installation import free_port, installation
from tests.support.waiting import wait_until

HASHING = {"THALWEG_EMBEDDING__PROVIDER": "hashing"}
TEXTS = {"weir.md": "# Weir\n\nA weir holds the river back.", "dam.md": "# Dam\n\nA dam closes the valley of Basel."}


def found(url: str) -> list[str]:
    answer = httpx.get(f"{url}/v1/search", params={"q": "what closes the valley", "k": 1}, timeout=30)
    return [hit["document_id"] for hit in answer.json()["hits"]] if answer.is_success else []


def told_to_type(said: str) -> list[list[str]]:
    """The commands of the refusal, in words."""
    return [shlex.split(line) for line in re.findall(r"^  ((?:mkdir|thalweg) .*)$", said, re.MULTILINE)]


def test_what_the_refusal_says_to_type_leads_to_new_stores_while_the_old_ones_answer(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    with installation(data_dir, **HASHING) as thalweg:
        thalweg.run("load", *(str(tmp_path / name) for name in TEXTS))
        digest = thalweg.run_json("verify")["digest"]
    (manifest,) = (data_dir / "generations").glob("*/manifest.json")
    manifest.write_text(re.sub(r'"extractor": "[^"]*"', '"extractor": "rules-0"', manifest.read_text()))

    refused = subprocess.run(
        [sys.executable, "-m", "thalweg", "up", "--data-dir", str(data_dir), "--port", str(free_port())],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )
    assert refused.returncode == 2
    assert "extractor: stored 'rules-0'" in refused.stderr
    moving, up, serve = told_to_type(refused.stderr)
    assert up == ["thalweg", "up", "--data-dir", str(data_dir)]
    assert serve[:3] == ["thalweg", "serve", "--data-dir"]

    subprocess.run(" ".join(shlex.quote(word) if word != "&&" else word for word in moving), shell=True, check=True)
    port = free_port()
    old = subprocess.Popen([sys.executable, "-m", *serve[:-1], str(port)], env=environment())
    try:
        wait_until(lambda: ready(port), "the old stores are served", 60)
        assert found(f"http://127.0.0.1:{port}") == ["dam.md"]
        with installation(data_dir, **HASHING) as thalweg:
            wait_until(lambda: found(thalweg.url) == ["dam.md"], "the new stores are there", 60)
            assert thalweg.run_json("verify", "--wait-seconds", "60")["digest"] == digest
            assert found(f"http://127.0.0.1:{port}") == ["dam.md"]
    finally:
        old.terminate()
        old.wait(30)


def ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2).is_success
    except httpx.HTTPError:
        return False


def environment() -> dict[str, str]:
    return os.environ | HASHING | {"HF_HUB_OFFLINE": "1"}
