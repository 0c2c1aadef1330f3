"""The image's recipe: locked dependencies, no shell, no root, nothing that the build context does not have."""

import json
import re
import shlex

from tests.unit.manifests.sources import ROOT, container_arguments, pod_user

RECIPE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


def instructions(name: str) -> list[str]:
    """The arguments of every instruction of a name, in order."""
    return [line.partition(" ")[2].strip() for line in RECIPE.splitlines() if line.startswith(f"{name} ")]


def installs() -> list[list[str]]:
    """Every call of pip that installs or builds."""
    return [words for words in map(json.loads, instructions("RUN")) if words[0].endswith("/pip")]


def test_no_instruction_goes_through_a_shell() -> None:
    commands = [*instructions("RUN"), *instructions("ENTRYPOINT"), *instructions("CMD")]

    assert all(isinstance(json.loads(command), list) for command in commands)
    assert len(instructions("ENTRYPOINT")) == 1


def test_everything_from_an_index_is_locked_by_hash() -> None:
    from_index = [words for words in installs() if "--no-index" not in words and words[1] == "install"]
    local = [words for words in installs() if words not in from_index]

    assert ["--require-hashes" in words for words in from_index] == [True, True]
    assert ["--no-deps" in words for words in local] == [True, True]
    for words in from_index:
        lines = (ROOT / words[words.index("-r") + 1]).read_text().splitlines()
        pinned = [line for line in lines if re.match(r"[A-Za-z]", line)]
        assert pinned
        assert all("==" in line for line in pinned)


def test_the_build_requirements_are_those_of_the_project() -> None:
    built = (ROOT / "requirements/build.txt").read_text()
    locked = (ROOT / "requirements/dev.txt").read_text()
    pinned = [line.split()[0] for line in built.splitlines() if "==" in line]

    assert any(one.startswith("hatchling==") for one in pinned)
    assert [one for one in pinned if not re.search(rf"^{re.escape(one)}\b", locked, re.MULTILINE)] == []


def test_the_process_is_the_user_that_the_deployment_names() -> None:
    user, group = pod_user()

    assert [f"{user}:{group}"] == instructions("USER")
    assert user != 0


def test_the_deployment_runs_what_the_image_runs() -> None:
    (command,) = instructions("CMD")

    assert container_arguments() == json.loads(command)


def test_nothing_is_written_beside_the_code_at_run_time() -> None:
    last = RECIPE.rpartition("FROM ")[2]

    assert "PYTHONDONTWRITEBYTECODE=1" in last
    assert "VOLUME" not in RECIPE


def test_the_context_is_a_list_of_what_is_copied() -> None:
    copied = [
        source
        for line in instructions("COPY")
        if not line.startswith("--from")
        for source in shlex.split(line)[:-1]
    ]
    allowed = {line.removeprefix("!").partition("/")[0] for line in IGNORED if line.startswith("!")}

    assert "*" in IGNORED
    assert {source.rstrip("/") for source in copied} == allowed
    assert all((ROOT / source).exists() for source in copied)
