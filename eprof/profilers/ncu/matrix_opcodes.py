"""Flops of matrix instructions by the type of their operands, from opcodes with modifiers: `HMMA.16816.F32.BF16`.

The digits are the shape m n k of the product that a warp works out: 2 m n k flops. Those of Hopper
(`HGMMA.64x128x16.F32`) are one product for the four warps of a group, each of which ncu counts. Not known
are instructions of steps (HMMA.884 of Volta) and those of Blackwell's tc pipe (UTCHMMA), which do not tell their shape.
"""

from collections.abc import Mapping, Sequence

from eprof.base.text import pattern

WITH_MODIFIERS = "sass__inst_executed_per_opcode_with_modifier_all"
TYPES = ("fp64", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "other")
_OF_A_WARP = pattern(r"(8|16)8(4|8|16|32|64|128|256)")
_OF_A_GROUP = pattern(r"64x(\d+)x(\d+)")
_WARPS_OF_A_GROUP = 4
_FLOATS = {"TF32": "tf32", "BF16": "bf16"}
_INTEGERS = {"S8": "int8", "U8": "int8"}
_BY_MODIFIER = {
    "HMMA": _FLOATS,
    "HGMMA": _FLOATS,
    "IMMA": _INTEGERS,
    "IGMMA": _INTEGERS,
    "QMMA": {"E4M3": "fp8", "E5M2": "fp8"},
}
_TYPE = {
    "DMMA": "fp64", "HMMA": "fp16", "IMMA": "other", "BMMA": "other", "QMMA": "fp6", "OMMA": "fp4",
    "HGMMA": "fp16", "IGMMA": "other", "BGMMA": "other", "QGMMA": "fp8",
}  # fmt: skip


def flops_by_type(instructions: Mapping[str, float]) -> dict[str, float] | None:
    """The flops of matrix opcodes by type of operand, of warp instructions; None where a matrix opcode is not known."""
    flops = dict.fromkeys(TYPES, 0.0)
    for opcode, number in instructions.items():
        name, *modifiers = opcode.split(".")
        if not name.endswith("MMA"):
            continue
        size = _multiply_adds(modifiers)
        if name not in _TYPE or size is None or any(modifier.startswith("STEP") for modifier in modifiers):
            return None
        kinds = _BY_MODIFIER.get(name, {})
        kind = next((kinds[modifier] for modifier in modifiers if modifier in kinds), _TYPE[name])
        flops[kind] += 2 * size * number
    return flops


def _multiply_adds(modifiers: Sequence[str]) -> float | None:
    """How many multiply-adds a warp's share of a matrix opcode is; None if the modifiers do not tell its shape."""
    for modifier in modifiers:
        if shape := _OF_A_WARP.fullmatch(modifier):
            return int(shape[1]) * 8 * int(shape[2])
        if shape := _OF_A_GROUP.fullmatch(modifier):
            return 64 * int(shape[1]) * int(shape[2]) / _WARPS_OF_A_GROUP
    return None
