"""Not public: the writer of all files, the format of model files, and checks of what files claim."""
