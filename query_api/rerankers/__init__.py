"""An optional model that reads the question together with each of the first hits of a search, and scores them anew."""
