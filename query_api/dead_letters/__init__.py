"""Dead letters looked at by people: read from the end of their topic, shown without harm to a terminal."""
