"""Machine code of benchmarks: SASS, as `cuobjdump -sass` prints it, counted by word, and what it says of their claims.

Each kernel has one loop, in which all that is counted happens; so the mix of one turn is that of the whole launch.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from eprof.base.text import pattern, when
from eprof.base.toml import Document
from eprof.base.vocabulary import RANDOM
from eprof.commands.calibrate import manifest as manifests
from eprof.commands.calibrate.manifest import Benchmark, Capability, Manifest

_FUNCTION = pattern(r"\s*Function : (\S+)")
_INSTRUCTION = pattern(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P[T\d]+\s+)?([A-Z][\w.]*)(.*?);")
_TARGET = pattern(r"0x([0-9a-f]+)")
_BITS = pattern(r"\.(?:[US](8|16)|(64|128))\b")  # of an access, where they are not 32
_MEMORY = {"LDG": "read", "LD": "read", "STG": "write", "ST": "write", "LDS": "shared_read", "STS": "shared_write"}
_LEVELS = {"read": ("l1_read", "l2_read", "dram_read"), "write": ("l1_write", "l2_write", "dram_write")}
_SLACK = 3.0


@cache
def _words() -> Mapping[str, str]:
    """Opcode -> word of the vocabulary (`calibration/opcodes.toml`)."""
    words = Document.read(manifests.home() / "opcodes.toml").data["word"]
    return {opcode: word for word, opcodes in words.items() for opcode in opcodes.split()}


class Instruction(NamedTuple):
    """One line of machine code: its address, opcode with modifiers, operands."""

    address: int
    opcode: str
    operands: str


def functions(text: str) -> dict[str, list[Instruction]]:
    """Kernel -> its machine instructions, of a disassembly that `cuobjdump -sass` printed."""
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
    """The instructions of each loop in a kernel's machine code: from a backward branch's target to the branch."""
    bodies = []
    for branch in code:
        target = _TARGET.search(branch.operands)
        if branch.opcode.startswith("BRA") and target and int(target[1], 16) < branch.address:
            start = int(target[1], 16)
            bodies.append([instruction for instruction in code if start <= instruction.address <= branch.address])
    return bodies


def tally(body: Sequence[Instruction]) -> Counter[str]:
    """Word -> a thread's instructions, and "read", "write" and so on -> its bytes, in one turn of a loop."""
    counts: Counter[str] = Counter()
    for instruction in body:
        head = instruction.opcode.split(".")[0]
        if head in _MEMORY:
            bits = _BITS.search(instruction.opcode)
            counts[_MEMORY[head]] += int((bits and (bits[1] or bits[2])) or 32) // 8
        elif head != "NOP":
            moves = "IMAD.MOV" in instruction.opcode or (head == "HFMA2" and instruction.operands.count("RZ") >= 2)
            counts[when(moves, "misc") or _words().get(head, "misc")] += 1
    return counts


def contradictions(
    manifest: Manifest, benchmark: Benchmark, capability: Capability, code: Sequence[Instruction]
) -> list[str]:
    """A sentence for each count of a benchmark that its machine code contradicts; [] if it does what it claims."""
    bodies = loops(code)
    if len(bodies) != 1:
        return [f"its machine code has {len(bodies)} loops instead of one"]
    seen = tally(bodies[0])
    claimed = manifest.counts(benchmark, capability, 1, 1, overhead=False)
    # Machine code does not show which level serves a byte of global memory: claims are added up by way.
    of_memory = {RANDOM, *(level for levels in _LEVELS.values() for level in levels)}
    expected = {word: count for word, count in claimed.items() if word not in of_memory}
    for way, levels in _LEVELS.items():
        total = sum(claimed.get(level, 0.0) for level in levels)
        if total:
            expected[way] = total
    rough = {word: formula({"threads": 1, "iterations": 1}) for word, formula in benchmark.overhead.items()}
    sentences = []
    for word in sorted({*expected, *seen} - {"misc"}):
        claim = expected.get(word, 0.0) + rough.get(word, 0.0)
        if abs(seen[word] - claim) > _SLACK * (word in rough):
            sentences.append(f"a turn of its loop has {seen[word]:g} of {word} in machine code, not {claim:g}")
    if seen["misc"] > _SLACK + 0.05 * sum(seen.values()) and claimed:
        sentences.append(f"a turn of its loop has {seen['misc']} instructions that do nothing of what is measured")
    return sentences
