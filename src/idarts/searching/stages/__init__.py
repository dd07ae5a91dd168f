"""Schedules of stages: one a file. A schedule is a function of the settings that returns a list of `Stage`s."""
