"""One search, from question to hits, and the engine that runs it; it never knows how the answer is sent."""
