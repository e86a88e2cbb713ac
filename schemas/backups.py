"""Backups over HTTP: a list, and the progress of the one being written."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

BACKUP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}\.tar(\.gz|\.zst)?")


class BackupRequest(BaseModel):
    """Copy the live generation into an archive beside the stores."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str | None = Field(
        None,
        description="Its file, which ends with `.tar`, `.tar.gz` or `.tar.zst`; left out: by the time.",
        examples=["monday.tar.zst"],
        json_schema_extra={"pattern": f"^{BACKUP_NAME.pattern}$"},
    )

    @field_validator("name")
    @classmethod
    def _names_an_archive(cls, given: str | None) -> str | None:
        if given is not None and BACKUP_NAME.fullmatch(given) is None:
            raise ValueError(
                "A backup's name has letters, digits, `-` and `_`, at most 80, and ends with .tar, .tar.gz or .tar.zst"
            )
        return given


class BackupShown(BaseModel):
    """`complete`: it is there. `writing`, `verifying`: see `done_bytes`. `failed`: see `problem`, and nothing of it is
    left. `intact` is null until it was verified by this service."""

    name: str
    state: Literal["writing", "verifying", "complete", "failed"]
    path: str = Field(description="On the machine of the service.")
    done_bytes: int = 0
    bytes: int | None = Field(None, description="Of what it holds, uncompressed.")
    file_bytes: int | None = Field(None, description="Of the archive.")
    problem: str | None = None
    intact: bool | None = None
    made_at: str | None = None
    version: str | None = Field(None, description="The program that wrote it.")
    generation: str | None = None
    model: str | None = None
    documents: int | None = None
    positions: str | None = Field(None, description="The last records in it, as a token.")


class BackupList(BaseModel):
    backups: list[BackupShown]
