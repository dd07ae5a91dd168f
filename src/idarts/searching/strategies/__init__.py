"""Strategies: one a file. A strategy is a subclass of `idarts.searching.strategy.Strategy`."""
