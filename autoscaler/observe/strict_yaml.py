"""YAML as operators write it, read strictly: plain data, every key stated once, every fault one sentence.

YAML silently keeps the last of two equal keys, and a file nested too deeply to follow exhausts the stack; both are faults.
"""

from typing import Any

import yaml


class YamlError(ValueError):
    """The text is no YAML that we read; the message is one line."""


def load_yaml(text: str) -> Any:
    """The only document of a text; raises `YamlError`."""
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a safe loader
    except RecursionError:
        raise YamlError("nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # numbers and dates that Python cannot hold
        raise YamlError(" ".join(str(error).split())) from None


class _StrictLoader(yaml.SafeLoader):
    """Safe loading that refuses repeated keys and keys that are no text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the parent's signature
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not text", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is repeated", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
