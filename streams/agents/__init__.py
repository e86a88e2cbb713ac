"""The Faust agents: records taken in batches, handed on, acknowledged."""
