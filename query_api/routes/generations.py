"""`/v1/generations`: the generations of the stores; rebuild, switch and drop, as orders on the log."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Response

from indexer.errors import DamagedStore
from indexer.generations import (
    Generation,
    Manifest,
    current_generation,
    generations,
    new_generation_name,
    read_build,
    read_manifest,
    require_room,
)
from query_api.context import Service
from query_api.errors import ApiProblem, problem_responses
from query_api.index.collection_settings import SettingsReader
from query_api.middleware import ModelRoute
from query_api.routes.collections import UNREADABLE, publish, unreadable
from query_api.routes.parameters import ServiceOf
from schemas.curation import encode_choice
from schemas.errors import Failure
from schemas.generations import (
    GENERATION_NAME,
    Build,
    BuildProgress,
    ComparisonShown,
    GenerationAccepted,
    GenerationEvent,
    GenerationList,
    GenerationOrder,
    GenerationPipeline,
    GenerationShown,
    RebuildRequest,
    SwitchRequest,
    generation_key,
)

router = APIRouter(tags=["generations"], route_class=ModelRoute)

SILENT_MS = 30_000  # a build that has written nothing for so long does not run
NAME = {"pattern": f"^{GENERATION_NAME.pattern}$"}
NameInPath = Annotated[str, Path(json_schema_extra=NAME)]


@router.get("/v1/generations", summary="The generations there are")
async def list_generations(service: ServiceOf) -> GenerationList:
    """The live one, those that are built beside it, and those that are kept for switching back."""
    orders, notes = await _orders(service)
    shown = await asyncio.to_thread(_shown, service, orders)
    return GenerationList(generations=list(shown.values()), notes=notes)


@router.get("/v1/generations/{name}", summary="One generation, and how far it is", responses=problem_responses(404))
async def get_generation(name: NameInPath, service: ServiceOf) -> GenerationShown:
    orders, _ = await _orders(service)
    shown = await asyncio.to_thread(_shown, service, orders)
    if name not in shown:
        raise _unknown(name, shown)
    return shown[name]


@router.post(
    "/v1/generations", status_code=202, summary="Rebuild the stores from the log", responses=problem_responses(409, 507)
)
async def post_generation(rebuild: RebuildRequest, service: ServiceOf, response: Response) -> GenerationAccepted:
    """The worker builds the next generation beside the live one, from the beginning of the log and by its settings of
    now, and switches to it when it is complete. Searches and writes go on. 409 while another is being built."""
    data_dir = service.settings.storage.data_dir
    live = await asyncio.to_thread(_live, service)
    orders, _ = await _orders(service)
    for other in (await asyncio.to_thread(_shown, service, orders)).values():
        if other.state in ("ordered", "building") or (other.state == "ready" and other.switches):
            raise _conflict(
                f"Generation {other.name} is being built: wait for it, or drop it with "
                f"'thalweg generations drop {other.name}'."
            )
    try:
        await asyncio.to_thread(require_room, live)
    except Failure as error:
        raise ApiProblem(507, "Disk full", str(error)) from error
    name = await asyncio.to_thread(new_generation_name, data_dir)
    order = GenerationOrder(wanted="live" if rebuild.switch else "built", base=live.name, reason=rebuild.reason)
    position = await publish(service, generation_key(name), encode_choice(order))
    response.headers["Location"] = f"/v1/generations/{name}"
    return GenerationAccepted(name=name, position=position)


@router.post(
    "/v1/generations/{name}/switch",
    status_code=202,
    summary="Make a generation the live one",
    responses=problem_responses(404, 409),
)
async def post_switch(
    name: NameInPath, service: ServiceOf, response: Response, switch: SwitchRequest | None = None
) -> GenerationAccepted:
    """One that is ready is switched to within seconds; one that was kept is brought up to date first. 409 for one that
    is being built, has failed or is live."""
    live = await asyncio.to_thread(_live, service)
    orders, _ = await _orders(service)
    shown = await asyncio.to_thread(_shown, service, orders)
    if name not in shown:
        raise _unknown(name, shown)
    generation = shown[name]
    force = switch is not None and switch.force
    if generation.state == "live":
        raise _conflict(f"Generation {name} is live already.")
    if generation.state in ("ordered", "building"):
        raise _conflict(f"Generation {name} is not complete: see how far it is with 'thalweg generations show {name}'.")
    if generation.state == "failed":
        raise _conflict(f"Generation {name} cannot be switched to. {generation.problem}")
    if generation.state == "ready" and generation.problem and not force:
        raise _conflict(generation.problem)
    order = GenerationOrder(wanted="live", base=live.name, reason=generation.reason or "", force=force)
    position = await publish(service, generation_key(name), encode_choice(order))
    response.headers["Location"] = f"/v1/generations/{name}"
    return GenerationAccepted(name=name, position=position)


@router.delete(
    "/v1/generations/{name}",
    status_code=202,
    summary="Drop a generation, with its stores",
    responses=problem_responses(404, 409),
)
async def delete_generation(name: NameInPath, service: ServiceOf) -> GenerationAccepted:
    """Ends its build, too. The documents stay in the log. 409 for the live one."""
    live = await asyncio.to_thread(_live, service)
    orders, _ = await _orders(service)
    shown = await asyncio.to_thread(_shown, service, orders)
    if name == live.name:
        raise _conflict(f"Generation {name} is live: switch to another one first.")
    if name not in shown:
        raise _unknown(name, shown)
    return GenerationAccepted(name=name, position=await publish(service, generation_key(name), None))


async def _orders(service: Service) -> tuple[dict[str, GenerationEvent], list[str]]:
    """The newest order about each generation; a note in place of them while the log is unavailable."""
    reader = SettingsReader(service.locate_broker, service.topics.curation, service.skipped)
    try:
        found = await reader.generation_orders()
    except UNREADABLE as error:
        return {}, [f"What was ordered is not known: {unreadable(error)}"]
    return {event.name: event for event in found}, []


def _live(service: Service) -> Generation:
    """Raises ApiProblem 503 where there is none."""
    try:
        live = current_generation(service.settings.storage.data_dir)
    except DamagedStore as error:
        raise ApiProblem(503, "Store unavailable", str(error)) from error
    if live is None:
        raise ApiProblem(
            503, "Not ready", "There is no generation yet: the worker makes the first one.", retry_after_seconds=2
        )
    return live


def _shown(service: Service, orders: Mapping[str, GenerationEvent]) -> dict[str, GenerationShown]:
    data_dir = service.settings.storage.data_dir
    live = _live(service)
    existing = {generation.name: generation for generation in generations(data_dir)}
    shown = {name: _generation(generation, live, orders.get(name)) for name, generation in existing.items()}
    for name, event in orders.items():
        if event.order is not None and name not in existing and event.order.base in existing:
            shown[name] = GenerationShown(
                name=name,
                state="ordered",
                reason=event.order.reason or None,
                base=event.order.base,
                switches=event.order.wanted == "live",
            )
    return dict(sorted(shown.items()))


def _generation(generation: Generation, live: Generation, event: GenerationEvent | None) -> GenerationShown:
    try:
        manifest: Manifest | None = read_manifest(generation)
    except DamagedStore:
        manifest = None
    build = read_build(generation)
    is_live = generation.name == live.name
    state = "live" if is_live else _state(build)
    order = event.order if event is not None else None
    is_worked_on = build is not None and state in ("building", "ready", "failed")
    return GenerationShown.model_validate(
        {
            "name": generation.name,
            "state": state,
            "reason": (build.reason if build else None) or None,
            "base": (build.base if build else None) or None,
            "switches": not is_live and order is not None and order.wanted == "live",
            "problem": build.problem if build is not None and is_worked_on else None,
            "bytes": sum(path.stat().st_size for path in generation.root.rglob("*") if path.is_file()),
            "progress": _progress(build) if build is not None and is_worked_on else None,
            "comparison": None
            if build is None or build.comparison is None
            else ComparisonShown.model_validate(build.comparison, from_attributes=True),
            "pipeline": None if manifest is None else GenerationPipeline.model_validate(manifest, from_attributes=True),
        }
    )


def _state(build: Build | None) -> str:
    """A build that is complete and has not been worked on for a while is kept as it is."""
    if build is None:
        return "kept"
    if build.ready_ms is not None and time.time_ns() // 1_000_000 - build.at_ms > SILENT_MS:
        return "kept"
    return build.state


def _progress(build: Build) -> BuildProgress:
    return BuildProgress(
        records=build.records,
        of_records=build.of_records,
        chunks=build.chunks,
        seconds=build.seconds,
        records_per_second=round(build.records / build.seconds, 1) if build.seconds else None,
        seconds_left=None if build.state == "ready" or build.seconds_left is None else round(build.seconds_left, 1),
    )


def _unknown(name: str, there: Mapping[str, GenerationShown]) -> ApiProblem:
    known = ", ".join(there)
    return ApiProblem(404, "No such generation", f"There is no generation {name[:40]!r}; there are {known}.")


def _conflict(detail: str) -> ApiProblem:
    return ApiProblem(409, "Conflict", detail)
