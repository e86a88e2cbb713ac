"""What crosses a process border: ids, events, topics, contributions, frames, API models, settings blocks."""
