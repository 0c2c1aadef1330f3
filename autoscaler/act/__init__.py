"""Writes: an action becomes requests, requests are sent under a lease and a ledger, and what was done can be put back."""
