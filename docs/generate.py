"""Writes the reference pages that are made from code: `python -m docs.generate`. A test holds them to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autoscaler.model.policy import policy_schema
from autoscaler.model.reasons import ACTING, CATALOGUE, Reason

HERE = Path(__file__).parent


def reasons_page() -> str:
    """Every reason code with its meaning and what would change the answer."""
    lines = ["# Reason codes", "", "One closed list, used alike in plans, metrics, logs and pages.", ""]
    for title, wanted in (("Acting", True), ("Refusing", False)):
        lines += [f"## {title}", "", "| code | meaning | what changes the answer |", "| --- | --- | --- |"]
        lines += [
            f"| `{reason}` | {CATALOGUE[reason].meaning} | {CATALOGUE[reason].remedy} |"
            for reason in Reason
            if (reason in ACTING) == wanted
        ]
        lines.append("")
    return "\n".join(lines)


def policy_page() -> str:
    """Every policy field with its default and the reason for it."""
    schema = policy_schema()["$defs"]
    lines = [
        "# The policy",
        "",
        "A YAML file (`AUTOSCALER_POLICY_FILE`), reloaded when it changes; a file with a fault is refused and the old policy stays.",
        "Every field is also an environment variable, `AUTOSCALER_<SECTION>_<FIELD>`, which wins over the file.",
        "",
        "```yaml",
        "apiVersion: gpu-autoscaler.io/v1alpha1",
        "kind: Policy",
        "evidence:",
        "  window: 30m",
        "```",
        "",
    ]
    for section, reference in schema["Policy"]["properties"].items():
        name = (reference.get("$ref") or reference["allOf"][0]["$ref"]).rpartition("/")[2]
        lines += [f"## {section}", "", (schema[name].get("description") or "").strip(), ""]
        lines += ["| field | default | why |", "| --- | --- | --- |"]
        lines += list(_fields(schema[name]["properties"]))
        lines.append("")
        for field, stated in schema[name]["properties"].items():
            listed = stated.get("items", {}).get("$ref", "").rpartition("/")[2]
            if listed:
                what = (schema[listed].get("description") or "").strip()
                lines += [
                    f"Each of `{field}`: {what}",
                    "",
                    "| field | default | why |",
                    "| --- | --- | --- |",
                ]
                lines += [*_fields(schema[listed]["properties"]), ""]
    return "\n".join(lines)


def _fields(properties: dict[str, Any]) -> Iterator[str]:
    for name, field in properties.items():
        default = field.get("default", "(must be stated)")
        shown = ", ".join(map(str, default)) if isinstance(default, list | tuple) else default
        told = "none" if shown in (None, "") else shown
        yield f"| `{name}` | `{told}` | {field.get('description', '')} |"


PAGES = {"reasons.md": reasons_page, "policy.md": policy_page}


def main() -> None:
    """Writes all pages."""
    for name, page in PAGES.items():
        (HERE / name).write_text(page())


if __name__ == "__main__":
    main()
