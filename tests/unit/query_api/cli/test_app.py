"""The commands: exit codes that mean something, one plain message for each foreseeable failure."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import app
from query_api.cli.server import bind, check_data_dir
from query_api.settings import ServiceBlock, ServiceSettings
from schemas.errors import InUse, WrongSetting
from schemas.settings import StorageSettings


class StubClient:
    """A client that answers with what it was asked."""

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return {"path": path, "params": params}

    def close(self) -> None:
        return


def test_json_is_the_answer_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "service_client", lambda url, data_dir: StubClient())
    result = CliRunner().invoke(app.app, ["status", "--json"])
    assert json.loads(result.stdout) == {"path": "/v1/status", "params": None}


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InUse, match="--port"):
            bind(ServiceBlock(port=other.getsockname()[1]))


def test_an_address_that_is_not_ours_is_told() -> None:
    key: Any = "a-key-of-sixteen-or-more"
    with pytest.raises(WrongSetting, match=r"192\.0\.2\.1"):
        bind(ServiceBlock(host="192.0.2.1", port=0, api_key=key))


def test_a_data_directory_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongSetting, match="is a file"):
        check_data_dir(ServiceSettings(storage=StorageSettings(data_dir=tmp_path / "file")))


def test_the_commands_import_no_store_no_model_and_no_web_framework() -> None:
    heavy = "{'torch', 'lancedb', 'kuzu', 'pyarrow', 'fastapi', 'aiokafka', 'numpy', 'ir_measures'}"
    commands = "query_api.cli.app, query_api.cli.api, query_api.cli.collections, query_api.cli.evaluate"
    modules = f"{commands}, query_api.client, query_api.cli.display"
    program = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_service_loads_neither_kuzu_nor_a_writer() -> None:
    program = (
        "import sys, query_api.app; print([name for name in sys.modules if name.startswith(('kuzu', 'indexer.write'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
