"""What the machine code of a benchmark's loop really is: SASS, as `cuobjdump -sass` prints it, counted by word.

Each kernel has one loop, in which all that is counted happens; so the mix of one turn is that of the whole launch.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eprof.base.text import pattern
from eprof.calibration.manifest import Benchmark, Capability, Manifest

_FUNCTION = pattern(r"\s*Function : (\S+)")
_INSTRUCTION = pattern(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P[T\d]+\s+)?([A-Z][\w.]*)(.*?);")
_TARGET = pattern(r"0x([0-9a-f]+)")
# Opcodes by word, up to the first dot. Those that are in no list (moves, selections, the uniform datapath) are `misc`.
_WORDS: Mapping[str, str] = {
    opcode: word
    for word, opcodes in {
        "fp32_fma": "FFMA FFMA32I",
        "fp32_add": "FADD FADD32I",
        "fp32_mul": "FMUL FMUL32I",
        "fp64_fma": "DFMA",
        "fp64_add": "DADD",
        "fp64_mul": "DMUL",
        "fp16_fma": "HFMA2 HFMA2_32I",
        "fp16_add": "HADD2 HADD2_32I",
        "fp16_mul": "HMUL2 HMUL2_32I",
        "special": "MUFU",
        "conversion": "I2F I2FP F2I F2F I2I F2FP FRND",
        "tensor": "HMMA IMMA DMMA BMMA",
        "control": "BRA BRX JMP EXIT CALL RET BSSY BSYNC SSY SYNC PBK BRK CONT WARPSYNC",
        "integer": "IADD IADD3 IADD32I IMAD IMUL XMAD LOP LOP3 LOP32I SHF SHL SHR ISETP ISCADD LEA IMNMX BFE BFI POPC "
        "FLO IABS VIADD VIMNMX PRMT ICMP ISET IDP VABSDIFF",
    }.items()
    for opcode in opcodes.split()
}
_MEMORY = {"LDG": "read", "LD": "read", "STG": "write", "ST": "write", "LDS": "shared_read", "STS": "shared_write"}
_LEVELS = {"read": ("l1_read", "l2_read", "dram_read"), "write": ("l1_write", "l2_write", "dram_write")}
_SLACK = 3.0


class Instruction(NamedTuple):
    """One line of machine code: its address, opcode with modifiers, operands."""

    address: int
    opcode: str
    operands: str


def functions(text: str) -> dict[str, list[Instruction]]:
    """The instructions of every function in a disassembly."""
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
    """The bodies of all loops: what lies between a branch backwards and its target. A branch to itself is none."""
    bodies = []
    for branch in code:
        target = _TARGET.search(branch.operands)
        if branch.opcode.startswith("BRA") and target and int(target[1], 16) < branch.address:
            start = int(target[1], 16)
            bodies.append([instruction for instruction in code if start <= instruction.address <= branch.address])
    return bodies


def tally(body: Sequence[Instruction]) -> Counter[str]:
    """Instructions by word and bytes by way, a thread: `read` and `write` of global memory, whatever the level."""
    counts: Counter[str] = Counter()
    for instruction in body:
        head = instruction.opcode.split(".")[0]
        if head in _MEMORY:
            counts[_MEMORY[head]] += _bytes(instruction.opcode)
        elif _moves(instruction):
            counts["misc"] += 1
        elif head != "NOP":
            counts[_WORDS.get(head, "misc")] += 1
    return counts


def _bytes(opcode: str) -> int:
    wide = re.search(r"\.(64|128)\b", opcode)
    narrow = re.search(r"\.[US](8|16)\b", opcode)
    size = wide or narrow
    return int(size[1]) // 8 if size else 4


def _moves(instruction: Instruction) -> bool:
    """Whether it only moves a value: `IMAD.MOV`, or an FP16 multiply-add whose factors are zero registers."""
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
    expected = _by_way(claimed)
    rough = {word: formula({"threads": 1, "iterations": 1}) for word, formula in benchmark.overhead.items()}
    sentences = []
    for word in sorted({*expected, *seen} - {"misc"}):
        wanted = expected.get(word, 0.0) + rough.get(word, 0.0)
        slack = _SLACK if word in rough else 0.0
        if abs(seen[word] - wanted) > slack:
            sentences.append(f"a turn of its loop has {seen[word]:g} of {word} in machine code, not {wanted:g}")
    if seen["misc"] > _SLACK + 0.05 * sum(seen.values()) and claimed:
        sentences.append(f"a turn of its loop has {seen['misc']} instructions that do nothing of what is measured")
    return sentences


def _by_way(claimed: Mapping[str, float]) -> dict[str, float]:
    """Claimed counts with global memory by way: the code does not show which level serves a byte."""
    counts = {word: count for word, count in claimed.items() if not any(word in levels for levels in _LEVELS.values())}
    for way, levels in _LEVELS.items():
        total = sum(claimed.get(level, 0.0) for level in levels)
        if total:
            counts[way] = total
    return counts
