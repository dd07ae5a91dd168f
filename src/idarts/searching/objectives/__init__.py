"""Objectives of the weight steps: one a file. An objective makes the loss of one step from the losses of mixtures.

It is a class that is made with the settings of the search and its own options, and called as `objective(draw,
evaluate)`: `draw()` gives the mixtures that the strategy trains next, `evaluate(mixtures)` their loss on the step's
batch. Each evaluation is counted as one gradient evaluation. `state_dict` and `load_state_dict` are optional.
"""
