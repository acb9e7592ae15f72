"""Files: the one writer, the format of model files, and what is checked of what a file says. Not public."""
