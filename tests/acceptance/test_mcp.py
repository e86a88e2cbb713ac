"""Assistants with the official SDK's client: over HTTP and by a program, on the whole installation."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters

from tests.support.processes.installation import ROOT, Installation, free_port

PAGE = (ROOT / "docs" / "mcp.md").read_text()
WEIR = {"id": "notes/weir.md", "content": "The weir at Orsa opens in May."}


def example(language: str) -> str:
    """The one of the page in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def as_configured(thalweg: Installation) -> StdioServerParameters:
    """What the page has an assistant start, from this checkout and for this installation."""
    configured: dict[str, Any] = json.loads(example("json"))["mcpServers"]["thalweg"]
    assert Path(configured["command"]).name == "thalweg"
    arguments = [thalweg.url if each.startswith("http") else each for each in configured["args"]]
    return StdioServerParameters(
        command=sys.executable, args=["-m", "thalweg", *arguments], env={"PYTHONPATH": str(ROOT)}, cwd=ROOT
    )


def withdraw(thalweg: Installation) -> None:
    assert httpx.delete(f"{thalweg.url}/v1/documents/{WEIR['id']}", timeout=30).status_code == 202


def test_the_example_adds_a_document_and_finds_it(hashing: Installation) -> None:
    program = example("python").replace("http://127.0.0.1:8420", hashing.url)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"{WEIR['id']} {WEIR['content']}" in ran.stdout.splitlines()
    withdraw(hashing)


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_program_of_the_page_has_the_same_tools(hashing: Installation, era: str) -> None:
    async def talk() -> None:
        async with Client(hashing.url + "/mcp") as direct, Client(as_configured(hashing), mode=era) as client:
            listed = await direct.list_tools()
            assert [each.name for each in (await client.list_tools()).tools] == [each.name for each in listed.tools]
            assert (client.server_info, client.instructions) == (direct.server_info, direct.instructions)
            added = await client.call_tool("add", WEIR)
            after = added.structured_content["token"]
            question = {"q": "weir Orsa", "mode": "keyword", "after": after}
            found, elsewhere = [await each.call_tool("search", question) for each in (client, direct)]
            assert found.structured_content["hits"] == elsewhere.structured_content["hits"]
            assert found.structured_content["hits"][0]["document_id"] == WEIR["id"]
            refused = await client.call_tool("get", {"kind": "document", "id": "nobody"})
            assert refused.is_error
            assert refused.content[0].text.startswith("No such document: There is no document 'nobody'")  # type: ignore[union-attr]
            at_once = await asyncio.gather(*(client.call_tool("status", {}) for _ in range(20)))
            assert {each.is_error for each in at_once} == {False}
            with pytest.raises(Exception, match=r"There is no tool 'sing'"):
                await client.call_tool("sing", {})
            with pytest.raises(Exception, match=r"The body is over 262,144 bytes\. Send less at once\."):
                await client.call_tool("search", {"q": "x" * 1_000_000})

    before = (hashing.data_dir / "logs" / "service.log").read_text()
    asyncio.run(talk())
    withdraw(hashing)
    logged = (hashing.data_dir / "logs" / "service.log").read_text().removeprefix(before)
    assert [line for line in logged.splitlines() if json.loads(line)["level"] in ("warning", "error")] == []


def test_the_program_ends_with_its_client_or_without_a_service(hashing: Installation) -> None:
    ended = hashing.run("mcp", text_in="")
    assert (ended.stdout, ended.stderr) == ("", "")
    nobody = hashing.run("mcp", "--url", f"http://127.0.0.1:{free_port()}", check=False)
    assert (nobody.returncode, nobody.stdout) == (3, "")
    assert "No query service answers at" in nobody.stderr
