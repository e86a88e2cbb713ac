"""The routes, a module for each part of the interface: they read the request, ask the service, and shape the answer."""
