"""`/v1/backups`: copies of the live generation, written beside the stores while everything runs."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from query_api.errors import ApiProblem, conflict, problem_responses
from query_api.middleware import ModelRoute
from query_api.operations.backup_jobs import Backups
from query_api.operations.jobs import JobRunning
from query_api.routes.parameters import of_app
from schemas.backups import BACKUP_NAME, BackupList, BackupRequest, BackupShown

router = APIRouter(tags=["generations"], route_class=ModelRoute)


async def backup_name(name: Annotated[str, Path(json_schema_extra={"pattern": f"^{BACKUP_NAME.pattern}$"})]) -> str:
    """Raises ApiProblem 404 for what cannot be one."""
    if BACKUP_NAME.fullmatch(name) is None:
        raise _missing(name[:100])
    return name


Name = Annotated[str, Depends(backup_name)]


BackupsOf = Annotated[Backups, of_app("backups")]
RUNNING = "Another backup is being written or verified: wait for it, and see GET /v1/backups."


@router.post("/v1/backups", status_code=202, summary="Back up the live stores", responses=problem_responses(409))
async def post_backup(request: BackupRequest, backups: BackupsOf, response: Response) -> BackupShown:
    """Tables, graph and positions of the live generation into an archive in `backups` of the data directory, from which
    `thalweg restore` makes another one. 409 while another is being written."""
    try:
        shown = backups.begin(request.name)
    except JobRunning as error:
        raise conflict(RUNNING) from error
    except FileExistsError as error:
        raise conflict(f"There is a backup {request.name} already: choose another name, or drop it first.") from error
    response.headers["Location"] = f"/v1/backups/{shown.name}"
    return shown


@router.get("/v1/backups", summary="The backups there are")
async def list_backups(backups: BackupsOf) -> BackupList:
    """Those in `backups` of the data directory, and the one that is being written."""
    return BackupList(backups=await asyncio.to_thread(backups.listed))


@router.get("/v1/backups/{name}", summary="One backup, and its progress", responses=problem_responses(404))
async def get_backup(name: Name, backups: BackupsOf) -> BackupShown:
    try:
        return await asyncio.to_thread(backups.shown, name)
    except FileNotFoundError as error:
        raise _missing(name) from error


@router.post(
    "/v1/backups/{name}/verify", status_code=202, summary="Check a backup", responses=problem_responses(404, 409)
)
async def verify_backup(name: Name, backups: BackupsOf) -> BackupShown:
    """Reads all of it; its `intact` is the outcome. 409 while another is being written or checked."""
    try:
        return backups.verify(name)
    except JobRunning as error:
        raise conflict(RUNNING) from error
    except FileNotFoundError as error:
        raise _missing(name) from error


@router.delete("/v1/backups/{name}", status_code=204, summary="Drop a backup", responses=problem_responses(404, 409))
async def delete_backup(name: Name, backups: BackupsOf) -> None:
    try:
        await asyncio.to_thread(backups.drop, name)
    except JobRunning as error:
        raise conflict(RUNNING) from error
    except FileNotFoundError as error:
        raise _missing(name) from error


def _missing(name: str) -> ApiProblem:
    return ApiProblem(404, "No such backup", f"There is no backup {name}: GET /v1/backups lists those there are.")
