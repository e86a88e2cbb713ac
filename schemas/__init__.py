"""What crosses a process border: ids, events, topics, graph contributions, frames, API models, settings blocks."""
