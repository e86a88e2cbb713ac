"""What goes to the log: documents that come over HTTP, retrievals; it never writes to a store."""
