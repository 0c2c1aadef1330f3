"""Values: what the other rooms hand to each other.

This room knows no clock, no network, no environment and no log.
Everything here is frozen, comparable and serialisable; times are integer milliseconds since the epoch.
"""
