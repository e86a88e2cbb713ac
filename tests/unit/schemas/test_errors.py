"""How commands end: a plain message on standard error and a code that means something."""

import json

import pytest

from schemas.errors import Exit, Failure, InUse, NoAccess, Unreachable, WrongSetting, plain_failures


@pytest.mark.parametrize(
    ("failure", "code"),
    [(Failure, 1), (WrongSetting, 2), (Unreachable, 3), (InUse, 4), (NoAccess, 5)],
)
def test_a_foreseeable_failure_ends_with_its_message_and_code(
    failure: type[Failure], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, plain_failures():
        raise failure("Do this instead.")

    assert ended.value.code == code
    assert capsys.readouterr().err == "thalweg: Do this instead.\n"


def test_a_name_in_a_message_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), plain_failures():
        raise Failure("There are documents in a\x1b[31m, b\u202e.\nDo this.")
    assert capsys.readouterr().err == "thalweg: There are documents in a\\x1b[31m, b\\u202e.\nDo this.\n"


def test_no_permission_names_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, plain_failures():
        raise PermissionError(13, "Permission denied", "/data")

    assert ended.value.code == Exit.NO_ACCESS
    assert "/data" in capsys.readouterr().err


def test_argument_that_is_not_utf8_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, plain_failures():
        "a\udcff".encode()
    assert ended.value.code == Exit.USAGE
    assert capsys.readouterr().err == "thalweg: 'a\\udcff' is not UTF-8, so it cannot be sent or written.\n"


def test_further_exceptions_can_be_made_plain(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, plain_failures({LookupError: Exit.FAILED}):
        raise KeyError("gone")

    assert ended.value.code == Exit.FAILED
    assert "gone" in capsys.readouterr().err


def test_what_nobody_foresaw_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), plain_failures():
        _ = 1 / 0


def test_it_serves_as_a_decorator() -> None:
    @plain_failures()
    def command(name: str) -> str:
        return name

    assert command("up") == "up"


@pytest.mark.parametrize(("failure", "code"), [(InUse("Do this\ninstead."), 4), (KeyError("unforeseen"), 1)])
def test_where_standard_error_is_a_log_the_message_is_one_line_of_json(
    failure: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, plain_failures(stderr_is_log=True):
        raise failure

    (line,) = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert ended.value.code == entry["exit_code"] == code
    assert str(failure) in entry["event"]
    assert ("Traceback" in entry.get("exception", "")) == (code == 1)
