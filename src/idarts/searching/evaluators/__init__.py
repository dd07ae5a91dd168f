"""Evaluators: one a file. An evaluator is a subclass of `idarts.searching.evaluator.Evaluator`."""
