"""Not public: text forms of parts, their docstrings, and errors for unknown names."""
