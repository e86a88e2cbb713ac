"""ASGI middleware: API key, hosts and origins; sizes of request bodies."""
