from textwrap import dedent

from tests.mutants.operators import mutants

GUARD = dedent(
    """
    def guard_size(size, most):
        if size > most and most:
            return Ruling("size", "too large", Reason.LIMIT, remedy="wait")
        return Ruling("size", "fits")
    """
)


def changed(source: str) -> dict[str, str]:
    return {mutant.what: mutant.source for mutant in mutants(source)}


def test_each_operator_weakens_one_place() -> None:
    found = changed(GUARD)

    assert "return Ruling('size', 'too large')" in found["refusal_dropped"]
    assert "if False:" in found["condition_never"]
    assert "if size >= most and most:" in found["bound_moved"]
    assert "if size > most:" in found["operand_lost"]
    assert len(list(mutants(GUARD))) == 4


def test_every_guard_of_a_list_is_removed_in_turn() -> None:
    found = changed("GUARDS = (guard_a, guard_b)")

    assert found == {"guard_a removed": "GUARDS = (guard_b,)", "guard_b removed": "GUARDS = (guard_a,)"}


def test_other_tuples_stay() -> None:
    assert changed("NAMES = (guard_a, 1)") == changed("EMPTY = ()") == {}
