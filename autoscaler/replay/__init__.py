"""Replay: what a policy would have done to recorded load, scored the same way for every policy.

This room knows recorded series and policies. It knows no cluster and writes nothing; the load's future is never handed to
a policy, only to the scorer and to the oracle that policies are measured against.
"""
