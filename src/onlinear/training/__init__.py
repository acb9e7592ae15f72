"""Training on a stream: the run itself, its measures, and what it says of the result. Not public."""
