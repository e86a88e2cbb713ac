"""The Faust agents: records taken in batches, passed on, acknowledged."""
