"""All attacks of one attacker, in an order that its seed alone decides."""

from collections.abc import Callable, Iterator

from tests.kubereef.hostile import bodies, definitions, patches, questions
from tests.kubereef.hostile.aims import Aim, Attack
from tests.kubereef.hostile.surface import Surface

Family = Callable[[Aim], Attack]

# How many of a hundred requests belong to each family. What is about one connection rather than one request is in wire.
FAMILIES: dict[Family, int] = {
    bodies.wrong_type: 24,
    bodies.strange_value: 9,
    bodies.mutated: 10,
    bodies.strange_metadata: 6,
    bodies.good: 7,
    bodies.broken_text: 6,
    bodies.compressed: 1,
    patches.json_patch: 4,
    patches.merge_patch: 4,
    patches.strategic_patch: 4,
    patches.apply_patch: 5,
    patches.broken_patch: 1,
    questions.parameters: 7,
    questions.headers: 3,
    questions.methods_and_paths: 2,
    questions.strange_callers: 1,
    questions.deletions: 4,
    definitions.hostile_definition: 2,
    definitions.custom_object: 2,
}


def attacks(surface: Surface, seed: int, number: int) -> Iterator[Attack]:
    """Yield requests without end; the same surface, seed and number give the same ones."""
    aim = Aim(surface, seed, number)
    families, weights = list(FAMILIES), list(FAMILIES.values())
    while True:
        (family,) = aim.random.choices(families, weights)
        yield family(aim)
