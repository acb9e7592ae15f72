"""Text forms of parts, and what to say of names that are unknown. Not public."""
