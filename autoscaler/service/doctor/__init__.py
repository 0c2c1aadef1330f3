"""The live examination: is everything there that decisions rest on, and if not, what would mend it.

`gathering` asks the API server and the metrics store, each once and each also when the other fails; every check is a
pure function of what was gathered. Nothing is changed: a review of rights is the only object that is ever posted, and
the API server keeps none of those.
"""
