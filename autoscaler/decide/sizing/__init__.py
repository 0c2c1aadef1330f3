"""How much of a board a unit should hold: a slice, the whole of it, or nothing while nobody asks for it.

`watch` folds samples into what is known of one unit, `peers` learns from units alike, `forecast` says how likely another
idle hour is, `slices` which step of the ladder carries load and memory, and `vertical` chooses and says why. Everything here
is values in and values out; the same code decides about a cluster and about a recorded trace.
"""
