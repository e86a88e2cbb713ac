"""`/v1/generations`: the generations of the stores; rebuild, switch and drop, as orders on the log."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Path, Response

from indexer.errors import DamagedStore, OtherFormat
from indexer.generation_folders import (
    Generation,
    current_generation,
    generations,
    new_generation_name,
    read_build,
    read_manifest,
    require_room,
)
from query_api.errors import ApiProblem, conflict, problem_responses
from query_api.middleware import ModelRoute
from query_api.routes.collections import UNREADABLE, publish, read_curation, unreadable
from query_api.routes.parameters import ServiceOf
from query_api.service_context import Service
from schemas.curation import encode_choice
from schemas.errors import Failure
from schemas.generations import (
    GENERATION_NAME,
    Build,
    BuildProgress,
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


class _Overview(NamedTuple):
    """The generations on disk and the newest order about each; `notes` say what of this is not known."""

    live: Generation
    existing: Mapping[str, Generation]
    orders: Mapping[str, GenerationEvent]
    notes: list[str]

    def names(self) -> list[str]:
        """With those that were ordered and that the worker has not begun."""
        ordered = {
            name for name, event in self.orders.items() if event.order is not None and event.order.base in self.existing
        }
        return sorted(self.existing.keys() | ordered)

    def show(self, name: str) -> GenerationShown:
        """All but its size. Raises ApiProblem 404."""
        names = self.names()
        if name not in names:
            known = ", ".join(names)
            raise ApiProblem(404, "No such generation", f"There is no generation {name[:40]!r}; there are {known}.")
        event = self.orders.get(name)
        order = event.order if event is not None else None
        switches = name != self.live.name and order is not None and order.wanted == "live"
        if name in self.existing:
            generation = self.existing[name]
            return _of_disk(generation, is_live=name == self.live.name).model_copy(update={"switches": switches})
        return GenerationShown(
            name=name,
            state="ordered",
            reason=(order.reason if order else None) or None,
            base=order.base if order else None,
            switches=switches,
        )

    def show_with_size(self, name: str) -> GenerationShown:
        """Reads the sizes of all its files. Raises ApiProblem 404."""
        generation = self.existing.get(name)
        size = None if generation is None else generation.size_bytes()
        return self.show(name).model_copy(update={"bytes": size})


@router.get("/v1/generations", summary="The generations there are")
async def list_generations(service: ServiceOf) -> GenerationList:
    """The live one, those that are built beside it, and those that are kept for switching back."""
    overview = await _overview(service)
    shown = await asyncio.to_thread(lambda: [overview.show_with_size(name) for name in overview.names()])
    return GenerationList(generations=shown, notes=overview.notes)


@router.get("/v1/generations/{name}", summary="One generation, and its progress", responses=problem_responses(404))
async def get_generation(name: NameInPath, service: ServiceOf) -> GenerationShown:
    overview = await _overview(service)
    return await asyncio.to_thread(overview.show_with_size, name)


@router.post(
    "/v1/generations", status_code=202, summary="Rebuild the stores from the log", responses=problem_responses(409, 507)
)
async def post_generation(rebuild: RebuildRequest, service: ServiceOf, response: Response) -> GenerationAccepted:
    """The worker builds the next generation beside the live one, from the beginning of the log and by its settings of
    now, and switches to it when it is complete. Searches and writes go on. 409 while another is being built."""
    overview = await _overview(service)
    await _require_no_build(overview)
    try:
        await asyncio.to_thread(require_room, overview.live)
    except Failure as error:
        raise ApiProblem(507, "Disk full", str(error)) from error
    name = await asyncio.to_thread(new_generation_name, overview.live.data_dir)
    wanted: Literal["built", "live"] = "live" if rebuild.switch else "built"
    order = GenerationOrder(wanted=wanted, base=overview.live.name, reason=rebuild.reason)
    return await _accepted(service, response, name, order)


@router.post(
    "/v1/generations/{name}/switch",
    status_code=202,
    summary="Make a generation the live one",
    responses=problem_responses(404, 409),
)
async def post_switch(
    name: NameInPath, service: ServiceOf, response: Response, switch: SwitchRequest | None = None
) -> GenerationAccepted:
    """One that is ready is switched to within seconds; one that was kept or is behind is brought up to date first:
    `records_behind` and `seconds_left` are its progress. Nobody sees an older state than before the switch. 409 for
    one that is being built, has failed or is live."""
    overview = await _overview(service)
    generation = await asyncio.to_thread(overview.show, name)
    force = switch is not None and switch.force
    if generation.state == "live":
        raise conflict(f"Generation {name} is live already.")
    if generation.state in ("ordered", "building"):
        raise conflict(f"Generation {name} is not complete: see its progress with 'thalweg generations show {name}'.")
    if generation.state == "failed":
        raise conflict(f"Generation {name} cannot be switched to. {generation.problem}")
    if generation.state in ("ready", "behind") and generation.problem and not force:
        raise conflict(generation.problem)
    order = GenerationOrder(wanted="live", base=overview.live.name, reason=generation.reason or "", force=force)
    accepted = await _accepted(service, response, name, order)
    if (progress := generation.progress) is None:
        return accepted
    distance = {"records_behind": progress.of_records - progress.records, "seconds_left": progress.seconds_left}
    return accepted.model_copy(update=distance)


@router.delete(
    "/v1/generations/{name}",
    status_code=202,
    summary="Drop a generation, with its stores",
    responses=problem_responses(404, 409),
)
async def delete_generation(name: NameInPath, service: ServiceOf) -> GenerationAccepted:
    """Ends its build, too. The documents stay in the log. 409 for the live one."""
    overview = await _overview(service)
    if (await asyncio.to_thread(overview.show, name)).state == "live":
        raise conflict(f"Generation {name} is live: switch to another one first.")
    return GenerationAccepted(name=name, position=await publish(service, generation_key(name), None))


async def require_no_build(service: Service) -> None:
    """Raises ApiProblem 409 while a generation is being built."""
    await _require_no_build(await _overview(service))


async def _require_no_build(overview: _Overview) -> None:
    for other in await asyncio.to_thread(lambda: [overview.show(name) for name in overview.names()]):
        if other.state in ("ordered", "building") or (other.state in ("ready", "behind") and other.switches):
            raise conflict(
                f"Generation {other.name} is being built: wait for it, or drop it with "
                f"'thalweg generations drop {other.name}'."
            )


async def _accepted(service: Service, response: Response, name: str, order: GenerationOrder) -> GenerationAccepted:
    """The order put in the log, and where to look."""
    position = await publish(service, generation_key(name), encode_choice(order))
    response.headers["Location"] = f"/v1/generations/{name}"
    return GenerationAccepted(name=name, position=position)


async def _overview(service: Service) -> _Overview:
    """What is on disk, with a note where the log cannot be read. Raises ApiProblem 503 where there is no generation."""
    data_dir = service.settings.storage.data_dir
    try:
        live = await asyncio.to_thread(current_generation, data_dir)
    except DamagedStore as error:
        raise ApiProblem(503, "Store unavailable", str(error)) from error
    if live is None:
        raise ApiProblem(
            503, "Not ready", "There is no generation yet: the worker makes the first one.", retry_after_seconds=2
        )
    orders, notes = {}, []
    try:
        orders = {event.name: event for event in (await read_curation(service)).events(GenerationEvent)}
    except UNREADABLE as error:
        notes.append(f"What was ordered is not known: {unreadable(error)}")
    return _Overview(live, {each.name: each for each in generations(data_dir)}, orders, notes)


def _of_disk(generation: Generation, *, is_live: bool) -> GenerationShown:
    try:
        manifest = read_manifest(generation)
    except (DamagedStore, OtherFormat):
        manifest = None
    build = read_build(generation)
    state = "live" if is_live else _state(build)
    is_worked_on = build is not None and state in ("building", "behind", "ready", "failed")
    return GenerationShown.model_validate(
        {
            "name": generation.name,
            "state": state,
            "reason": (build.reason if build else None) or None,
            "base": (build.base if build else None) or None,
            "problem": build.problem if build is not None and is_worked_on else None,
            "progress": _progress(build) if build is not None and is_worked_on else None,
            "comparison": build.comparison if build is not None else None,
            "pipeline": None if manifest is None else GenerationPipeline.model_validate(manifest, from_attributes=True),
        }
    )


def _state(build: Build | None) -> str:
    """A build that is complete and has not been worked on for a while is kept as it is."""
    if build is None:
        return "kept"
    if build.ready_ms is None:
        return build.state
    if time.time_ns() // 1_000_000 - build.at_ms > SILENT_MS:
        return "kept"
    return "behind" if build.state == "building" else build.state


def _progress(build: Build) -> BuildProgress:
    return BuildProgress(
        records=build.records,
        of_records=build.of_records,
        chunks=build.chunks,
        seconds=build.seconds,
        records_per_second=round(build.records / build.seconds, 1) if build.seconds else None,
        seconds_left=None if build.state == "ready" or build.seconds_left is None else round(build.seconds_left, 1),
    )
