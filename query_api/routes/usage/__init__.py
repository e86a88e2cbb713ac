"""Routes about use: retrievals with what was said of them, analytics, the cache of results."""
