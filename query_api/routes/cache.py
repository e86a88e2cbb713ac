"""`/v1/cache`: the cache of results, looked at and cleared."""

from typing import Annotated

from fastapi import APIRouter, Depends

from query_api.context import Service, service_of
from schemas.api import CacheCleared, CacheStatistics

router = APIRouter(tags=["operations"])

ServiceOf = Annotated[Service, Depends(service_of)]


@router.get("/v1/cache", summary="The cache of results")
async def cache_statistics(service: ServiceOf) -> CacheStatistics:
    """How full it is, and how often it had the answer."""
    return service.cache.statistics()


@router.delete("/v1/cache", summary="Clear the cache of results")
async def clear_cache(service: ServiceOf) -> CacheCleared:
    """It is never stale, so this is for measuring, not for correctness."""
    return CacheCleared(removed=service.cache.clear())
