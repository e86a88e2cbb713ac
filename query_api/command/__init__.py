"""What `serve`, `search` and `status` do beside the service itself; they never open a store."""
