"""Relaxations: one a file. A relaxation turns α (a row for each decision, a column for each option) into a `Mixture`.

Any function of α will do. Three attributes are optional: `at(used)` gives the relaxation for a share of the budget (a
temperature that falls), `derivatives` says how often it can be differentiated (2 unless given), `share` says that it is
built into the supernet (partial channels).
"""
