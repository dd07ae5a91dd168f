"""Rules for α: one a file. A rule is a class made with α and its settings; `step(grads)` moves α in place."""
