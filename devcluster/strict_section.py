"""A section of a scenario file that knows all its keys."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class StrictSection(BaseModel):
    """Refuses unknown keys by naming the allowed ones; takes no value of another type than stated."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        allowed = sorted(field.alias or name for name, field in cls.model_fields.items())
        unknown = sorted(str(key) for key in content if key not in allowed)
        if unknown:
            raise ValueError(f"unknown key {', '.join(unknown)} (allowed: {', '.join(allowed)})")
        return content
