"""Many outputs in one pass: teams of outputs, and the loops that learn eight of them side by side. Not public."""
