"""The command line: what `serve`, `search` and `status` do, beside the service itself."""
