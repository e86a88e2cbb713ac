"""What `thalweg load` makes of files, folders and JSON lines."""

import gzip
import io
import json
import lzma
import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from indexer.parsing import parse
from schemas.errors import WrongSetting
from schemas.events import DocumentDelete, DocumentUpsert, decode_document_event
from schemas.settings import LimitSettings
from streams.loader.folders import Refused, Selection
from streams.loader.ignoring import LeftOut
from streams.loader.sources import Record, Sizes, read_sources, require_base_uri, require_charset

SIZES = Sizes(LimitSettings(max_document_bytes=1_000), 20_000)


def read(*paths: Path | str, selection: Selection | None = None) -> tuple[dict[str, Record], dict[str, str]]:
    """Records by key, and the reason of each refusal by the last part of its origin."""
    items = list(read_sources([str(path) for path in paths], selection or Selection(), SIZES))
    items = [item for item in items if not isinstance(item, LeftOut)]
    records = {str(item.key): item for item in items if isinstance(item, Record)}
    refused = {item.origin.rpartition("/")[2]: item.reason for item in items if isinstance(item, Refused)}
    assert len(items) == len(records) + len(refused)
    return records, refused


def decoded(record: Record) -> DocumentUpsert | DocumentDelete:
    return decode_document_event(str(record.key).encode(), record.value, record.headers, SIZES.limits)


def test_a_charset_goes_with_text_that_declares_none(tmp_path: Path) -> None:
    word = "Grüße".encode("latin-1")
    for name, content in {
        "a.txt": word,
        "b.html": b"<p>" + word + b"</p>",
        "linking.html": b'<p><a href="/in?charset=any">' + word + b"</a></p>",
        "declared.html": b'<meta charset="windows-1251"><p>' + "Привет".encode("cp1251") + b"</p>",
        "c.xml": b'<?xml version="1.0" encoding="windows-1251"?><p/>',
        "d.pdf": b"%PDF-1.4",
        "e.csv": b"name\n" + word,
        "utf8.txt": "Grüße".encode(),
        "marked.txt": "Grüße".encode("utf-16"),
    }.items():
        (tmp_path / name).write_bytes(content)
    records, _ = read(tmp_path, selection=Selection(charset="iso-8859-1"))
    assert {key: dict(record.headers)["content-type"].decode() for key, record in records.items()} == {
        "default/a.txt": "text/plain; charset=iso-8859-1",
        "default/b.html": "text/html; charset=iso-8859-1",
        "default/linking.html": "text/html; charset=iso-8859-1",
        "default/declared.html": "text/html",
        "default/c.xml": "application/xml",
        "default/d.pdf": "application/pdf",
        "default/e.csv": "text/csv; charset=iso-8859-1",
        "default/utf8.txt": "text/plain",
        "default/marked.txt": "text/plain",
    }
    texts = {
        key: parse(event.content, event.content_type).text
        for key, record in records.items()
        if key.endswith((".txt", ".html")) and isinstance(event := decoded(record), DocumentUpsert)
    }
    names = ("a.txt", "b.html", "linking.html", "utf8.txt", "marked.txt")
    german = dict.fromkeys([f"default/{name}" for name in names], "Grüße")
    assert texts == german | {"default/declared.html": "Привет"}
    (tmp_path / "a.txt").write_bytes("Gross".encode("utf-16-le"))
    records, _ = read(tmp_path / "a.txt", selection=Selection(charset="UTF_16le"))
    event = decoded(records["default/a.txt"])
    assert isinstance(event, DocumentUpsert)
    assert parse(event.content, event.content_type).text == "Gross"


@pytest.mark.parametrize("charset", ["latin-1", "windows-1251", "Shift_JIS", "utf-16", "gb18030"])
def test_character_sets_that_content_types_may_name_are_known(charset: str) -> None:
    require_charset(Selection(charset=charset))


@pytest.mark.parametrize("charset", ["latin-l", "rot13", "base64", "", "utf-8; x=y"])
def test_a_character_set_that_is_none_is_refused_before_anything_is_sent(charset: str) -> None:
    with pytest.raises(WrongSetting, match=r"No character set .* is known; give one such as iso-8859-1"):
        require_charset(Selection(charset=charset))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {
        "guide.md": b"# Guide",
        "deep/er/page.HTML": b"<p>Page</p>",
        "deep/data.json": b'{"content": "A JSON document."}',
        "deep/main.rs": b"fn main() {}",
        "film.mp4": b"film",
        "empty.txt": b" \n",
        "large.txt": b"x" * 1_001,
        ".hidden/secret.md": b"hidden",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_a_folders_files_have_their_relative_paths_as_ids_and_the_formats_of_their_extensions(folder: Path) -> None:
    records, refused = read(folder)
    assert {key: dict(record.headers)["content-type"].decode() for key, record in records.items()} == {
        "default/guide.md": "text/markdown",
        "default/deep/er/page.HTML": "text/html",
        "default/deep/data.json": "application/json",
        "default/deep/main.rs": "text/x-rust",
    }
    assert refused == {"film.mp4": "unknown_media_type", "empty.txt": "empty_content", "large.txt": "too_large"}
    assert read(folder) == (records, refused), "a load repeated is the same load"


def test_a_json_file_is_a_document_and_no_envelope(folder: Path) -> None:
    records, _ = read(folder / "deep" / "data.json")
    event = decoded(records["default/data.json"])
    assert isinstance(event, DocumentUpsert)
    assert (event.content, event.content_type) == (b'{"content": "A JSON document."}', "application/json")


def test_globs_choose_among_a_folders_files_and_may_be_repeated(folder: Path) -> None:
    records, _ = read(folder, selection=Selection("c", include=["*.md", "deep/*"], exclude=["*.rs", "*.json"]))
    assert set(records) == {"c/guide.md", "c/deep/er/page.HTML"}


@pytest.mark.parametrize("base", ["https://docs.example.org/v2", "https://docs.example.org/v2/"])
def test_a_base_uri_and_its_path_are_a_files_address(folder: Path, base: str) -> None:
    (folder / "deep" / "a b#c.md").write_bytes(b"# Odd")
    records, _ = read(folder, selection=Selection(base_uri=base))
    events = {key: decoded(record) for key, record in records.items()}
    assert {key: event.uri for key, event in events.items() if isinstance(event, DocumentUpsert)} == {
        "default/guide.md": "https://docs.example.org/v2/guide.md",
        "default/deep/a b#c.md": "https://docs.example.org/v2/deep/a%20b%23c.md",
        "default/deep/er/page.HTML": "https://docs.example.org/v2/deep/er/page.HTML",
        "default/deep/data.json": "https://docs.example.org/v2/deep/data.json",
        "default/deep/main.rs": "https://docs.example.org/v2/deep/main.rs",
    }
    _, refused = read(folder / "guide.md", selection=Selection(base_uri="https://x.org/" + "x" * 4_000))
    assert refused == {"guide.md": "uri_too_large"}


@pytest.mark.parametrize("base", ["", "docs/v2", "/docs", "https://[x"])
def test_what_begins_no_address_is_refused_before_anything_is_sent(base: str) -> None:
    with pytest.raises(WrongSetting, match="begins no address"):
        require_base_uri(Selection(base_uri=base))


def test_two_files_of_one_id_are_not_mixed_up(folder: Path) -> None:
    (folder / "deep" / "guide.md").write_bytes(b"# Another")
    records, refused = read(folder / "guide.md", folder / "deep" / "guide.md")
    assert (records["default/guide.md"].value, refused) == (b"# Guide", {"guide.md": "duplicate_id"})


LINES = [
    {"id": "a", "content": "one"},
    {"id": "b", "collection": "other", "content": "two"},
    {"id": "c", "content": "three", "metadata": {"collection": "not the document's"}},
    {"id": "d", "deleted": True},
]


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "jsonl.gz", "jsonl.xz", "JSONL.zst"])
def test_json_lines_are_read_compressed_or_not(tmp_path: Path, ending: str) -> None:
    text = "\n\n".join(json.dumps(line) for line in LINES).encode()
    file = tmp_path / f"some.{ending}"
    match ending.rpartition(".")[2]:
        case "gz":
            file.write_bytes(gzip.compress(text))
        case "xz":
            file.write_bytes(lzma.compress(text))
        case "zst":
            file.write_bytes(pa.compress(text, codec="zstd", asbytes=True))
        case _:
            file.write_bytes(text)
    records, refused = read(file, selection=Selection("mine"))
    assert refused == {}
    events = {key: decoded(record) for key, record in records.items()}
    assert set(events) == {"mine/a", "other/b", "mine/c", "mine/d"}
    assert isinstance(events["mine/d"], DocumentDelete)


def test_a_bad_line_is_refused_with_its_number_and_the_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        b'{"id": "a", "content": "one"}',
        b"{",
        b'{"id": "b"}',
        b'{"id": "x", "content": "' + b"x" * 30_000 + b'"}',
        b'{"id": "y", "content": "' + b"y" * 1_001 + b'"}',
        b'{"id": "", "content": "x"}',
        b"[" * 5_000,
        b'{"id": "z", "content": "z", "title": "' + b"z" * 2_001 + b'"}',
        b'{"id": "c", "content": "three"}',
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines))))
    records, refused = read("-")
    assert set(records) == {"default/a", "default/c"}
    assert refused == {
        "standard input:2": "not_json",
        "standard input:3": "empty_content",
        "standard input:4": "too_large",
        "standard input:5": "too_large",
        "standard input:6": "bad_key",
        "standard input:7": "wrong_type",
        "standard input:8": "title_too_large",
    }


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_a_damaged_file_is_read_as_far_as_it_goes(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"some.jsonl{ending}"
    file.write_bytes(b"neither of these")
    (tmp_path / "z.md").write_bytes(b"# Last")
    records, refused = read(tmp_path)
    assert (set(records), refused) == ({"default/z.md"}, {file.name: "unreadable"})


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_bytes(b"# Name")
    items = list(read_sources([str(tmp_path)], Selection(), SIZES))
    assert [item.reason for item in items if isinstance(item, Refused)] == ["bad_key"]


def test_a_file_that_may_not_be_read_is_refused_and_the_others_are_read(folder: Path) -> None:
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    records, _ = read(folder, folder / "gone.md")
    assert "default/guide.md" in records
    _, refused = read(folder / "gone.md")
    assert refused == {"gone.md": "unreadable"}
