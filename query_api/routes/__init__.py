"""The routes, a module for each part of the interface: they ask the service and shape its answer, never a store."""
