"""What the machine code of a benchmark's loop really is: SASS, as `cuobjdump -sass` prints it, counted by word.

Each kernel has one loop, in which all that is counted happens; so the mix of one turn is that of the whole launch.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from eprof.base.text import pattern
from eprof.base.toml import Document
from eprof.commands.calibrate.manifest import Benchmark, Capability, Manifest, home

_FUNCTION = pattern(r"\s*Function : (\S+)")
_INSTRUCTION = pattern(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P[T\d]+\s+)?([A-Z][\w.]*)(.*?);")
_TARGET = pattern(r"0x([0-9a-f]+)")
_MEMORY = {"LDG": "read", "LD": "read", "STG": "write", "ST": "write", "LDS": "shared_read", "STS": "shared_write"}
_LEVELS = {"read": ("l1_read", "l2_read", "dram_read"), "write": ("l1_write", "l2_write", "dram_write")}
_SLACK = 3.0


@cache
def _words() -> Mapping[str, str]:
    """Opcode -> word of the vocabulary (`calibration/opcodes.toml`)."""
    words = Document.read(home() / "opcodes.toml").data["word"]
    return {opcode: word for word, opcodes in words.items() for opcode in opcodes.split()}


class Instruction(NamedTuple):
    """One line of machine code: its address, opcode with modifiers, operands."""

    address: int
    opcode: str
    operands: str


def functions(text: str) -> dict[str, list[Instruction]]:
    """The machine instructions of every function in a disassembly."""
    instructions: dict[str, list[Instruction]] = {}
    name = ""
    for line in text.splitlines():
        if title := _FUNCTION.match(line):
            name = title[1]
            instructions[name] = []
        elif name and (code := _INSTRUCTION.match(line)):
            instructions[name].append(Instruction(int(code[1], 16), code[2], code[3]))
    return instructions


def loops(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """The bodies of all loops in machine code: what lies between a branch backwards and its target.

    A branch to itself is none.
    """
    bodies = []
    for branch in code:
        target = _TARGET.search(branch.operands)
        if branch.opcode.startswith("BRA") and target and int(target[1], 16) < branch.address:
            start = int(target[1], 16)
            bodies.append([instruction for instruction in code if start <= instruction.address <= branch.address])
    return bodies


def tally(body: Sequence[Instruction]) -> Counter[str]:
    """Machine instructions by word and bytes by way, a thread: `read` and `write` of global memory at any level."""
    counts: Counter[str] = Counter()
    for instruction in body:
        head = instruction.opcode.split(".")[0]
        if head in _MEMORY:
            wide = re.search(r"\.(64|128)\b", instruction.opcode)
            narrow = re.search(r"\.[US](8|16)\b", instruction.opcode)
            size = wide or narrow
            counts[_MEMORY[head]] += int(size[1]) // 8 if size else 4
        elif _moves(instruction):
            counts["misc"] += 1
        elif head != "NOP":
            counts[_words().get(head, "misc")] += 1
    return counts


def _moves(instruction: Instruction) -> bool:
    """Whether a machine instruction only moves a value: `IMAD.MOV`, or an FP16 multiply-add of zero registers."""
    return instruction.opcode.startswith("IMAD.MOV") or (
        instruction.opcode.startswith("HFMA2") and instruction.operands.count("RZ") >= 2
    )


def contradictions(
    manifest: Manifest, benchmark: Benchmark, capability: Capability, code: Sequence[Instruction]
) -> list[str]:
    """What of the benchmark's claim its machine code contradicts, a sentence each; empty if it is as claimed."""
    bodies = loops(code)
    if len(bodies) != 1:
        return [f"its machine code has {len(bodies)} loops instead of one"]
    seen = tally(bodies[0])
    claimed = manifest.counts(benchmark, capability, 1, 1, overhead=False)
    # Machine code does not show which level serves a byte of global memory: claims are added up by way.
    of_memory = {level for levels in _LEVELS.values() for level in levels}
    expected = {word: count for word, count in claimed.items() if word not in of_memory}
    for way, levels in _LEVELS.items():
        total = sum(claimed.get(level, 0.0) for level in levels)
        if total:
            expected[way] = total
    rough = {word: formula({"threads": 1, "iterations": 1}) for word, formula in benchmark.overhead.items()}
    sentences = []
    for word in sorted({*expected, *seen} - {"misc"}):
        claim = expected.get(word, 0.0) + rough.get(word, 0.0)
        slack = _SLACK if word in rough else 0.0
        if abs(seen[word] - claim) > slack:
            sentences.append(f"a turn of its loop has {seen[word]:g} of {word} in machine code, not {claim:g}")
    if seen["misc"] > _SLACK + 0.05 * sum(seen.values()) and claimed:
        sentences.append(f"a turn of its loop has {seen['misc']} instructions that do nothing of what is measured")
    return sentences
