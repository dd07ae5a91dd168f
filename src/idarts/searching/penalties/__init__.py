"""Penalties on α, which are added to the validation loss: one a file.

A penalty is a function of α by groups (only the living options of a row count), of the mask, and of the share of the
budget that is spent; options come as keywords. Its gradient in α is exact, so it needs no batch and costs nothing.
"""
