"""Callgrind: any CPU program on a simulated core, instruction by instruction; its time is that of a run without it."""

import contextlib
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from eprof.base.text import listed
from eprof.collect import program_marks
from eprof.collect.collector import (
    COUNTERS,
    CPU,
    EACH,
    ENERGY,
    TIME,
    Collector,
    Place,
    Request,
    Step,
    Then,
    Tool,
    Verdict,
)
from eprof.collect.directory import OTHER_CODE, QUEUED, SLEPT
from eprof.collect.machine import CORES, answer, ask, bytes_of, processor_name, text_of
from eprof.collect.process import Ended, loading_s

_INSTALL = "apt install valgrind, or the package of that name"
EXTRA = "pip install capstone"
_ARCHITECTURE = "x86_64"
# The size of many last-level caches, where neither this machine nor the cost table tells one.
_LAST_LEVEL = "8388608,16,64"
_MESSAGES = "messages"
LINES = "lines"  # of Python: logs/lines-1-4711.txt
# A child begins with the costs of its parent; written down before the fork, they are the parent's alone. A spawned
# child whose program cannot be executed writes its costs down, too.
_FORKS = ("fork", "__libc_fork", "_Fork", "vfork*", "__vfork*", "posix_spawn*")
_STARTED = "For interactive control"  # what a process says that was started, and one that was forked does not
_DUMPED = b"Trigger: --dump-before="
_FIRST_WORD = re.compile(r"(?:\\.|\S)+")  # blanks in a name are escaped
_SHOWN = 3
_REMEDIES = {
    "AVX-512": "-march=x86-64-v3, or -mno-avx512f behind -march=native",
    "an instruction": "-march=x86-64-v3 instead of -march=native",
}
# What Valgrind's processor has not, whatever it runs on, by its flag in Linux.
_HIDDEN = {"avx512f": "AVX-512", "sha_ni": "SHA instructions", "vaes": "wide AES"}
_CPUINFO = Path("/proc/cpuinfo")
_UNKNOWN = re.compile(r"(?i)unhandled instruction bytes: (0x62)?|unrecognised instruction")  # 0x62: AVX-512's prefix
_ENDED_AT = re.compile(r"unrecognised instruction at address .*\n.* at 0x[0-9A-F]+: (.*)", re.IGNORECASE)
# Valgrind runs one thread at a time: threads that wait in a loop would count as work.
_CALM = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
_PYTHON = re.compile(r"python[0-9.]*$")
_PYTHON_TIMES, _PYTHON_LINES = "EPROF_PYTHON_TIMES", "EPROF_PYTHON_LINES"
_ONE_THREAD = 1.1  # times what the first thread ran: so much processor time has a program without others
# What a Python prints of itself: the file that it is, and its environment.
_ASKED = r"import os, sys; print(sys.executable, *map('='.join, os.environ.items()), sep='\0', end='')"
# Flags of Python with which it takes no module from PYTHONPATH, or none at its start.
_ISOLATED = re.compile(r"-[A-Za-z]*[EIS]")


class Callgrind(Collector):
    """Valgrind's tool that counts by instruction address, and what decodes that."""

    name = "callgrind"
    rank = 40
    kinds = (TIME, ENERGY, COUNTERS)
    counts_all = True
    times_alone = True
    costs = "sapphirerapids"
    processor = CPU
    quicker = (
        "a smaller problem: valgrind takes 30 to 200 times as long as the program (multiply-adds are slowest; with "
        "OPENBLAS_CORETYPE=SandyBridge OpenBLAS multiplies and adds instead, five times quicker here)"
    )

    def find(self, program: str = "") -> Tool:
        """Look for valgrind and for what decodes its profiles."""
        path = shutil.which("valgrind")
        if os.uname().machine != _ARCHITECTURE:
            return Tool(self.name, False, f"its profiles are decoded on {_ARCHITECTURE} only")
        if path is None:
            return Tool(self.name, False, "valgrind is not installed", remedy=_INSTALL)
        version = re.search(r"valgrind-(\S+)", ask([path, "--version"]))
        if version is None:
            return Tool(self.name, False, "valgrind does not start", path, remedy=_INSTALL)
        if find_spec("capstone") is None:
            return Tool(self.name, False, "capstone, which decodes instructions, is not installed", path, remedy=EXTRA)
        return Tool(
            self.name,
            True,
            "every instruction of a CPU program, exact, and simulated caches; time from a run without it",
            path,
            version[1],
            device=processor_name(),
        )

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The step for one measurement: the program alone, for time or energy; or under callgrind, then decoded."""
        if what == TIME:
            if hook := _hook(request.program, os.environ):
                hook[_PYTHON_TIMES] = str(place.log("python", ".txt").absolute())
            why = "the program alone: its output, and the time of the whole program"
            return Step(what, request.program, why, environment=hook)
        if what == ENERGY:
            return Step(what, request.program, "the program alone, while the processor's energy counters are read")
        started, of_script = _behind_script(request.program[0])
        program = (started, *request.program[1:])
        hook = _hook(program, {**os.environ, **of_script})
        raw, log = place.log(what, "-*.out"), place.log(what, "")
        caches = {"LL": _LAST_LEVEL, **request.caches, **valgrind_caches()}
        sizes = ", ".join(f"{name} {numbers}" for name, numbers in sorted(caches.items()))
        command = (
            str(tool.path), "--tool=callgrind", "--dump-instr=yes", "--cache-sim=yes",
            *(f"--{name}={numbers}" for name, numbers in caches.items()), "--trace-children=yes",
            *(f"--dump-before={function}" for function in _FORKS), "--combine-dumps=yes",
            f"--callgrind-out-file={_for_each_process(log, 'out')}",
            f"--log-file={_for_each_process(place.log(_MESSAGES, ''), 'txt')}",
        )  # fmt: skip
        why = f"every instruction by address, and simulated caches ({sizes}: bytes, ways, line)"
        if hook:
            hook[_PYTHON_LINES] = str(place.log(LINES, "-").absolute())
            command = (*command, "--instr-atstart=no", "--dump-line=no")  # lines are told of Python alone
            why += ", from the first line of the program on, without imports"
        if any(map(_sets_marks, program)):
            command = (*command, "--separate-threads=yes")
        module = "eprof.profilers.callgrind.decode"
        decoder = (sys.executable, "-P", "-m", module, EACH, tool.device or "", started)
        return Step(
            what,
            (*command, *program),
            why,
            environment={
                **of_script,
                **hook,
                **{name: value for name, value in _CALM.items() if name not in os.environ},
                program_marks.VARIABLE: program_marks.COUNTED,
            },
            logs=(f"{log.name}-*.callgrind",),
            then=Then(decoder, raw, log.with_name(f"{EACH}.callgrind")),
        )

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """Sentences on what valgrind could not run or count, and the number of profiles; failed if there is none."""
        if step.then is None:
            return _alone(step, ended)
        folder = step.then.source.parent
        said = "".join(path.read_text(errors="replace") for path in folder.glob(f"{_MESSAGES}-*.txt"))
        messages = list(_no_instruction(said))
        failures = [path for path in sorted(folder.glob("*.callgrind.err")) if path.stat().st_size]
        messages += [f"Not decoded: {_last(path.read_text(errors='replace'))}" for path in failures[:_SHOWN]]
        processes = list(_processes(folder))
        messages += _counted_twice(folder, processes)
        program = next(word for word in step.command[1:] if not word.startswith("-"))  # behind valgrind's options
        for other in list(_others(program, processes).values())[:1]:  # its profile overwrites the program's own
            messages.append(
                f"{lost_before(program, other)}, so totals are lower bounds. Profile {other} itself, or let {program} "
                "start it without exec."
            )
        flags = text_of(_CPUINFO).split()
        hidden = [name for flag, name in _HIDDEN.items() if flag in flags]
        if "PYTHONPATH" in step.environment and hidden:
            messages.append(
                f"{OTHER_CODE}{listed(hidden, 'or')}, and this one has: libraries that choose their code by that "
                "(numpy, OpenBLAS, MKL, OpenSSL, the C library) ran other instructions here than in the timed run."
            )
        if not logs and not messages:
            reason = _last(said) or _last(errors) or f"it ended with {ended.status}"
            messages.append(f"Callgrind left no profile: {reason}")
        return Verdict(tuple(messages), failed=not logs, kernels=len(logs))


def _sets_marks(word: str) -> bool:
    """Whether a word of a command names a program that was built with `eprof_mark.h`."""
    with contextlib.suppress(OSError):
        code = Path(shutil.which(word) or "").read_bytes()
        return code.startswith(b"\x7fELF") and program_marks.VARIABLE.encode() in code
    return False


def _behind_script(name: str) -> tuple[str, dict[str, str]]:
    """The Python that a script of its name starts, as pyenv's do, and what that sets in the environment; else `name`.

    Valgrind would run all that the script starts, for many seconds, and lose what that did before it became Python.
    """
    path = Path(shutil.which(name) or name)
    if not (_PYTHON.search(path.name) and _interpreter(path)):
        return name, {}
    python, *variables = answer([str(path), "-c", _ASKED]).output.split("\0")
    if not Path(python).is_file():
        return name, {}
    told = dict(each.split("=", 1) for each in variables)
    return python, {about: value for about, value in told.items() if os.environ.get(about) != value}


def _interpreter(path: Path) -> list[str]:
    """The words behind #! in the first line of a script; none of other files."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(2) == b"#!":
            return file.readline(256).decode(errors="replace").split()
    return []


def _hook(program: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that has Python run `hook/sitecustomize.py` at its start; empty for other programs."""
    path, words = Path(shutil.which(program[0]) or program[0]), list(program)
    if not _PYTHON.search(path.name):
        words = _interpreter(path)
        if not any(map(_PYTHON.search, words[:2])):
            return {}
    flags = itertools.takewhile(lambda word: word.startswith("-") and word not in ("-c", "-m"), words[1:])
    if any(map(_ISOLATED.match, flags)):
        return {}
    folders = [str(Path(__file__).parent / "hook"), environment.get("PYTHONPATH")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, folders))}


def valgrind_caches(root: Path = Path("/")) -> dict[str, str]:
    """The caches of this processor as valgrind takes them: "I1", "D1" and "LL" -> "bytes,ways,bytes of a line".

    Valgrind simulates 2^n sets. Where a cache has others, its ways are as many as nearly fill it. What is not told is
    left out.
    """
    found = {}
    for index in sorted((root / CORES / "cpu0/cache").glob("index*")):
        level, kind, size, sets, line = (
            text_of(index / name).strip() for name in ("level", "type", "size", "number_of_sets", "coherency_line_size")
        )
        name = {"1": f"{kind[:1]}1"}.get(level, "LL")  # the last one that is listed is the last level
        if bytes_of(size) and sets.isdecimal() and line.isdecimal() and int(sets) * int(line):
            sets_simulated = 1 << int(sets).bit_length() - 1
            ways = max(bytes_of(size) // (sets_simulated * int(line)), 1)
            found[name] = f"{sets_simulated * ways * int(line)},{ways},{line}"
    return found


def _alone(step: Step, ended: Ended) -> Verdict:
    """A verdict with the s to leave out of the time of a program that ran alone, by reason, as nothing is counted then.

    That is the loader's work before the program's first instruction, or Python's own start and end, and imports; and
    where one thread does all, the time for which others had its processor, and for which it slept or waited.
    """
    left_out_s, used_s, queued_s = {}, ended.cpu_s, ended.queued_s
    if times := step.environment.get(_PYTHON_TIMES):
        try:
            numbers = Path(times).read_text().splitlines()[-1].split()
            counted_s, used_s, queued_s, imports_s = map(float, numbers)
        except (OSError, ValueError, IndexError):
            return Verdict()
        left_out_s = {"Python's start and end": ended.seconds - counted_s - imports_s, "imports": imports_s}
    elif step.what == TIME:
        start_s = loading_s(step.command[0])
        left_out_s, used_s = {"the start of the process": start_s}, used_s - start_s
    left_s = ended.seconds - sum(left_out_s.values())
    if min(left_out_s.values(), default=0.0) < 0 or min(left_s, used_s) <= 0:
        return Verdict()
    if ended.cpu_s < _ONE_THREAD * ended.ran_s:
        still_s = max(left_s - used_s, 0.0)
        left_out_s[QUEUED] = min(queued_s, still_s)
        left_out_s[SLEPT] = still_s - left_out_s[QUEUED]
    return Verdict(left_out_s=left_out_s, left_out_cpu_s=ended.cpu_s - used_s)


def _no_instruction(said: str) -> Iterator[str]:
    """Yields a sentence if an instruction that Valgrind does not know ended the program: which, where, what to do."""
    if unknown := _UNKNOWN.search(said):
        kind = "an instruction" if unknown[1] is None else "AVX-512"
        place = "".join(f" in {ended[1]}" for ended in _ENDED_AT.finditer(said))
        yield (
            f"Valgrind cannot run {kind} that the program has{place}, and ended it there: build it with "
            f"{_REMEDIES[kind]}, and run it again."
        )


def _for_each_process(stem: Path, suffix: str) -> str:
    """A file name for callgrind with valgrind's pattern for the process id."""
    return f"{str(stem).replace('%', '%%')}-%p.{suffix}"


class _Process(NamedTuple):
    """What valgrind says of a process: its number, its command line and its parent's number; "" where it does not.

    is_forked: it was forked, and did not execute another program.
    """

    number: str
    command: str
    parent: str
    is_forked: bool


def _processes(folder: Path) -> Iterator[_Process]:
    """The processes that valgrind followed. The command is the last that a process executed."""
    for path in sorted(folder.glob(f"{_MESSAGES}-*.txt")):
        text = path.read_text(errors="replace")
        command, parent = ("".join(re.findall(rf"{about}: (.*)", text)[:1]) for about in ("Command", "Parent PID"))
        number = path.stem.rpartition("-")[2]
        yield _Process(number, command, parent, _STARTED not in text)


def _others(program: str, processes: Sequence[_Process]) -> dict[str, str]:
    """Process number -> the program that a process under valgrind, started as `program`, went on to execute instead."""
    numbers = {process.number for process in processes}
    others = {}
    for process in processes:
        word = _FIRST_WORD.match(process.command)
        if word is None or process.parent in numbers:
            continue
        name = re.sub(r"\\(.)", r"\1", word[0])
        started, became = Path(shutil.which(program) or program), Path(name)
        are_here = started.is_file() and became.is_file()
        if not (started.samefile(became) if are_here else started.name == became.name):
            others[process.number] = name
    return others


def other_program(program: str, profile: Path) -> str:
    """The program that a profile is of, if it was executed in place of the one that was started; else ""."""
    return _others(program, list(_processes(profile.parent))).get(profile.stem.rpartition("-")[2], "")


def lost_before(program: str, other: str) -> str:
    """A clause on what the profile of a process lacks that executed another program."""
    return f"{program} executed {other} in its place: what it did before that is not counted"


def _counted_twice(folder: Path, processes: Sequence[_Process]) -> list[str]:
    """Sentences on processes forked with their parent's costs, which callgrind counts again; or none."""
    commands = {process.number: process.command for process in processes}
    # A parent that became another program since has a profile of that one only.
    same = [each for each in processes if each.is_forked and each.parent and each.command == commands.get(each.parent)]
    dumped = {each.parent: folder.glob(f"{COUNTERS}-*-{each.parent}.out") for each in same}
    written = {parent for parent, paths in dumped.items() if any(_DUMPED in path.read_bytes() for path in paths)}
    twice = [each for each in same if each.parent not in written]
    # The profile of a child that begins with several threads has those of its parent.
    dumps = {each: folder.glob(f"{COUNTERS}-*-{each.number}.out") for each in same if each.parent in written}
    begun = {each: [path.read_bytes().partition(b"\npart: 2")[0] for path in paths] for each, paths in dumps.items()}
    threaded = [each for each, parts in begun.items() if any(part.count(b"\nthread: ") > 1 for part in parts)]
    sentences = {
        f"What a parent did before it forked is counted again in {len(twice)} of its children, so totals are too high: "
        "callgrind found no function `fork` in the program. Build it with symbols, or not statically.": twice,
        f"What other threads of a parent did after its last mark, before it forked, may be counted again in "
        f"{len(threaded)} of its children, so totals may be too high.": threaded,
    }
    return [sentence for sentence, children in sentences.items() if children]


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return re.sub(r"^==\d+== ", "", "".join(lines[-1:]))


COLLECTOR = Callgrind()
