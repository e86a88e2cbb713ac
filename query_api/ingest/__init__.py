"""Documents that come over HTTP, on their way to the log."""
