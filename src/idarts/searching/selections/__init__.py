"""Selections: one a file. A selection is a function of the finished search that returns a `Selected` architecture."""
