"""Relaxations: one a file. A relaxation turns α (a row for each decision, a column for each option) into a `Mixture`.

Any function of α will do. Some attributes are optional: `at(used)` gives the relaxation for a share of the budget (a
temperature that falls), `derivatives` says how often it can be differentiated (2 unless given), `share` and
`edges` that a part of it is built into the supernet (partial channels, edge weights). `around(relaxation, net)` changes
the relaxation among the living options, with the columns of α as the supernet has them.
"""
