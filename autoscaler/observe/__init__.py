"""Reads: what the API server and the metrics store say becomes one frozen snapshot.

Stores are written by one task each and read through frozen views; series are joined to pods here, never in PromQL.
This room knows nothing of decisions: it reports what was seen and what was not, and never fills a gap.
"""
