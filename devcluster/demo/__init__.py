"""`make run`: the real service beside a real control plane, watched from outside as its user would.

The demo knows the service by its command, its environment variables and its HTTP interface only.
"""
