"""All that a run of rounds needs: its folder, checkpoints, signals, ranks, SGD, schedules, settings.

This package imports nothing by itself: most of its modules need torch; those for folders and settings do not.
"""
