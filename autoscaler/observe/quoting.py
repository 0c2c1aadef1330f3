"""How a text becomes a PromQL string: whatever it holds, it stays one value and changes nothing around it."""


def quoted(value: str) -> str:
    """The value as a string of PromQL, quotes included.

    Only backslash, quote and line feed end or change such a string; all else, control characters too, stands for itself.
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
