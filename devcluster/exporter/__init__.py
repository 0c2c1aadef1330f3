"""A GPU exporter for fake nodes: real placement in, believable GPU series out.

`allocation`, `load` and `exposition` are pure; `watch` reads the API server, `server` holds them together.
"""
