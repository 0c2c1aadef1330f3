"""Makes foreign text harmless: names, annotations and server messages come from strangers.

A control or direction character could rewrite a terminal line (show ``2 -> 1`` where ``1 -> 2`` is meant). Rich markup is
never parsed, because all cells are `rich.text.Text`.
"""

import re
from typing import Final

_HOSTILE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_MAX_CHARS: Final = 2_000


def printable(text: str) -> str:
    """The text with control, invisible and direction characters spelled out, cut to a sane length."""
    shown = text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}..."
    return _HOSTILE.sub(lambda match: _spelled(ord(match.group())), shown)


def printable_json(document: str) -> str:
    """A JSON document with such characters escaped; they occur inside strings only. Line ends between values stay."""
    return _HOSTILE.sub(
        lambda match: match.group() if match.group() == "\n" else _json_escape(match.group()), document
    )


def _spelled(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
