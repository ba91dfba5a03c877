"""The format of callgrind and cachegrind: costs of functions, of their instructions, and of their calls.

https://valgrind.org/docs/manual/cl-format.html has the grammar. A decoded profile is in the same format: its costs are
those of functions by source line, and its events have the classes of instructions too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import NamedTuple, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Columns, Floats, Ints, group_sums
from eprof.base.errors import LogError
from eprof.base.text import pattern
from eprof.logs.log import NOT_SHOWN, OUTSIDE

_NAME = pattern(r"c?(ob|fn|fl|fi|fe)=(?:\((\d+)\) ?)?(.*)")
_RECURSION = pattern(r"'\d+$")
_COST_STARTS = frozenset("0123456789+-*")
_JUMP = -1  # in the place of a number of calls: the next line is the place of a jump, without costs
_MOST_EVENTS = 1000
_MOST = 1 << 53  # larger numbers are damage: no program runs so long
_NOTE, LOST = "Note", "Lost"  # what is said of a decoded profile; what it lacks
_NO_FILE = ("", "???")
_TRIGGER, _CLIENT = "Trigger", "Client Request:"  # why a part was written: the program asked, and said where it is
# What `eprof_mark.h` and `hook/sitecustomize.py` say: a thread's mark begins (+), ends (-), or is the last (!).
_SAID = pattern(r"eprof (?P<thread>\d+) (?P<sign>[-+!]) ?(?P<name>.*)")
# What `hook/sitecustomize.py` says of a part whose line of Python is in a file beside the profile; and of the next part
# of that line.
SAMPLE, _RESUMED = "sample", "resumed"
_MARK = "Mark"  # in a decoded profile: which one the costs below it are of
_UNTOLD, _AND = "mark not told", " + "  # the first as `profile/grouping.py` calls what may be of any group
_HIGHEST = (1 << 63) - 1


class Function(NamedTuple):
    """A function and the object that it is in; cachegrind, which does not tell objects, has its source file."""

    object: str
    name: str


class Spot(NamedTuple):
    """A place in the source: a file and a line ("" and 0: not told). frame: the line of Python that ran then.

    mark: the innermost that was open then; of several threads at once, theirs. OUTSIDE, _UNTOLD.
    """

    file: str
    line: int
    frame: str = ""
    mark: str = OUTSIDE


class Call(NamedTuple):
    """Calls in a profile of one function by another from a spot: how many, and what all beneath took, (n_events,).

    source, target: the addresses of the call and of what it calls; 0 where they are not told.
    """

    caller: int
    callee: int
    number: int
    costs: list[int]
    spot: Spot
    source: int = 0
    target: int = 0


class CallgrindProfile(Struct, frozen=True, eq=False):
    """A callgrind profile. header: first value of each key ("cmd"). descriptions: lines of `desc`, by their subject.

    own: a row a line, a column an event. places: of each row's function in `functions`; spots likewise. addresses: of
    the instruction where has_addresses, else a line. totals: of each event, as the end of the file tells them; None: it
    has no end.
    """

    header: dict[str, str]
    descriptions: dict[str, str]
    functions: tuple[Function, ...]
    spots: tuple[Spot, ...]
    places: Ints
    spot_of: Ints
    addresses: Ints
    own: Columns
    calls: tuple[Call, ...]
    has_addresses: bool
    totals: Floats | None
    lines: int
    skipped: int

    @property
    def is_whole(self) -> bool:
        """Whether a callgrind file has its end, its lines add up to what that tells or more, and no part is lost."""
        return self.totals is not None and not (self.sums < self.totals).any() and LOST not in self.descriptions

    @property
    def damage(self) -> str | None:
        """A sentence on what a profile lacks, by its file's end; None: nothing. Raises LogError if it is too much."""
        if self.totals is None:
            return "the profile has no end: functions may be missing, and counts are lower bounds"
        if (self.sums > self.totals).any():
            raise LogError("its lines add up to more than its end tells, so it is damaged; make the profile again")
        return None

    def with_rest(self) -> Self:
        """The profile with what its end tells beyond its lines, which are lost, as one more function."""
        if self.totals is None or not (self.sums < self.totals).any():
            return self
        own = np.vstack([self.own.values, self.totals - self.sums])
        lost = f"lines of the profile are lost or damaged; what its end tells beyond them is in `{NOT_SHOWN}`"
        return replace(
            self,
            descriptions={LOST: lost} | self.descriptions,
            functions=(*self.functions, Function("???", NOT_SHOWN)),
            spots=(*self.spots, Spot("", 0)),
            places=np.append(self.places, len(self.functions)),
            spot_of=np.append(self.spot_of, len(self.spots)),
            addresses=np.append(self.addresses, 0),
            own=Columns(self.own.names, own),
        )

    @property
    def sums(self) -> Floats:
        """The sum of each event over all lines of a profile, (n_events,)."""
        sums: Floats = self.own.values.sum(axis=0)
        return sums

    @property
    def notes(self) -> list[str]:
        """The notes in a decoded profile on what could not be decoded, or is lost."""
        return [text for about, text in self.descriptions.items() if about.startswith((_NOTE, LOST))]

    def with_notes(self, notes: Iterable[str]) -> Self:
        """The same profile with `notes` among its descriptions."""
        described = {f"{_NOTE} {number}": note for number, note in enumerate(notes, 1)}
        return replace(self, descriptions={**self.descriptions, **described})

    def without_marks(self) -> Self:
        """The same profile without the marks that its program set; rows stay, and are not added up."""
        return replace(
            self,
            spots=tuple(spot._replace(mark=OUTSIDE) for spot in self.spots),
            calls=tuple(call._replace(spot=call.spot._replace(mark=OUTSIDE)) for call in self.calls),
        )

    def added(self, count: Callable[[Ints], Columns] | None = None) -> Self:
        """The profile with rows of one function, line and mark added up, and so calls of one function by another.

        count: what gives more columns of these sums, (n_groups, n), for the group of each row.
        """
        number_of: dict[Spot, int] = {}
        numbers = np.array([number_of.setdefault(spot, len(number_of)) for spot in self.spots], dtype=np.int64)
        # As one number a row: to sort rows of two takes ten times as long.
        used, codes = np.unique(self.places * len(number_of) + numbers[self.spot_of], return_inverse=True)
        places, spot_of = np.divmod(used, max(len(number_of), 1))
        own = Columns(self.own.names, group_sums(self.own.values, codes))
        if count is not None:
            more = count(codes)
            own = Columns((*own.names, *more.names), np.hstack([own.values, more.values]))
        calls: dict[tuple[int, int, Spot], list[int]] = {}
        for call in self.calls:
            key = (call.caller, call.callee, call.spot)
            calls[key] = [
                sum(pair) for pair in zip_longest(calls.get(key, ()), [call.number, *call.costs], fillvalue=0)
            ]
        return replace(
            self,
            spots=tuple(number_of),
            places=places,
            spot_of=spot_of,
            addresses=np.array([spot.line for spot in number_of])[spot_of],
            own=own,
            calls=tuple(
                Call(caller, callee, number, costs, spot) for (caller, callee, spot), (number, *costs) in calls.items()
            ),
            has_addresses=False,
        )

    def text(self) -> Iterator[str]:
        """The lines of a callgrind file with these costs."""
        yield "# callgrind format\nversion: 1\ncreator: callgrind, decoded by eprof"
        yield from (f"{key}: {value}" for key, value in self.header.items() if key in ("pid", "cmd"))
        yield from (f"desc: {key}: {value}" for key, value in self.descriptions.items())
        yield f"positions: line\nevents: {' '.join(self.own.names)}"
        calls: dict[tuple[str, int], list[Call]] = {}
        for call in self.calls:
            calls.setdefault((call.spot.mark, call.caller), []).append(call)
        spots = [self.spots[spot] for spot in self.spot_of.tolist()]
        keys = [(spot.mark, place) for spot, place in zip(spots, self.places.tolist(), strict=True)]
        rows = sorted(zip(keys, spots, self.own.values.tolist(), strict=True), key=itemgetter(0, 1))
        names = _Names()
        last = OUTSIDE
        for (mark, place), group in groupby(rows, key=itemgetter(0)):
            if mark != last:
                yield f"\ndesc: {_MARK}: {mark}"
                last = mark
            object_name, name = self.functions[place]
            yield f"\n{names.line('ob', object_name)}\n{names.line('fn', name)}"
            for _, spot, own in group:  # those that no file is told of come first
                yield from filter(None, [spot.file and names.line("fi", spot.file), _cost(own, spot.line)])
            for call in calls.pop((mark, place), ()):
                object_name, name = self.functions[call.callee]
                yield from filter(None, [call.spot.file and names.line("fi", call.spot.file)])
                yield f"c{names.line('ob', object_name)}\nc{names.line('fn', name)}"
                yield f"calls={call.number} 0\n{_cost(call.costs, call.spot.line)}"
        if self.totals is not None:
            yield f"\ntotals:{_cost(self.totals.tolist())[1:]}"


class _Names(dict[tuple[str, str], int]):
    """The numbers of names in a callgrind file, which has a name in full once, and then by its number."""

    def line(self, kind: str, name: str) -> str:
        """A name as the callgrind file writes it: in full the first time, later by its number."""
        if (kind, name) in self:
            return f"{kind}=({self[kind, name]})"
        self[kind, name] = len(self) + 1
        return f"{kind}=({self[kind, name]}) {name}"


def _cost(costs: Sequence[float], line: int = 0) -> str:
    words = [str(int(cost)) for cost in costs]
    while words and words[-1] == "0":
        words.pop()
    return " ".join([str(line), *words])


class _CallgrindLines(Struct):
    """The state of the parser of callgrind's files between two lines.

    own: the costs of all rows, `sizes` numbers each. totals: of each event, as the ends of all parts tell them.
    """

    header: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    functions: dict[Function, int] = field(default_factory=dict)
    spots: dict[Spot, int] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    spot_of: list[int] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    now: dict[str, str] = field(default_factory=dict)
    positions: int = 1
    has_lines: bool = True
    address: int = 0
    line: int = 0
    file: str = ""
    frame: str = ""
    mark: str = OUTSIDE
    thread: str = ""
    open_marks: dict[str, list[str]] = field(default_factory=dict)  # of each thread, the outermost first
    marked_by: dict[str, str] = field(default_factory=dict)  # of each thread, the number that it has for the system
    are_marks_told: bool = True
    samples: int = 0
    place: int = -1
    called: int | None = None
    target: int = 0
    has_end: bool = False
    totals: list[int] = field(default_factory=list)
    lines: int = 0
    skipped: int = 0

    def feed(self, line: str) -> None:
        """Take one line of a callgrind file. A damaged one is left out, and so are the costs of damaged calls."""
        self.lines += 1
        try:
            if line[:1] in _COST_STARTS:
                self._cost(line.split())
            elif line.startswith("calls="):
                self.called = _JUMP
                number, *target = line[6:].split()
                self.target = _moved(self.address, target[0]) if target else 0
                (self.called,) = _numbers([number])
            elif line.startswith(("jump=", "jcnd=")):
                self.called = _JUMP
            elif name := _NAME.fullmatch(line):
                self._name(line.partition("=")[0], *name.groups())
            elif not line.startswith("#"):
                self._header(*line.partition(":"))
        except (ValueError, IndexError):
            self.skipped += 1

    def _cost(self, words: Sequence[str]) -> None:
        """Take a line of costs of a callgrind file: a function's own, or, after a line of calls, those of the calls."""
        self.address = _moved(self.address, words[0])
        if self.positions == 1:
            self.line = self.address
        elif len(words) > 1:
            self.line = _moved(self.line, words[1])
        called, self.called = self.called, None
        if called == _JUMP:
            self.now.pop("cob", None)
            return
        costs = _numbers(words[self.positions :])
        if self.place < 0 or len(costs) > len(self.events):
            raise ValueError(words)
        is_told = self.has_lines and self.line and self.file not in _NO_FILE
        file, line = (self.file, self.line) if is_told else ("", 0)
        spot = Spot(file, line, self.frame, self.mark)
        if called is not None:
            callee = self._function(self.now.pop("cob", None), self.now.get("cfn", ""))
            # Callgrind takes a loop to a function's beginning for calls; those leave a return address in memory.
            is_call = True  # also where callgrind did not look
            if callee == self.place and self.sizes and "Dw" in self.events:
                stores = self.own[len(self.own) - self.sizes[-1] :][self.events.index("Dw") :]
                is_near = (self.places[-1], self.addresses[-1]) == (self.place, self.address)
                is_call = not is_near or stores[:1] > [0]
            if is_call:
                self.calls.append(Call(self.place, callee, called, costs, spot, self.address, self.target))
            return
        self.places.append(self.place)
        self.spot_of.append(self.spots.setdefault(spot, len(self.spots)))
        self.addresses.append(self.address)
        self.own += costs
        self.sizes.append(len(costs))

    def _name(self, key: str, kind: str, number: str | None, text: str) -> None:
        """Take a line of a callgrind file that names a function, a file or an object, or gives its number again."""
        if number is not None:
            of_kind = {"ob": "object", "fn": "function"}.get(kind, "file")
            text = self.names.setdefault((of_kind, number), text or f"({number})")
        self.now[key] = text
        if key in ("fl", "fi", "fe"):
            self.file = text
        elif key == "fn":
            self.place = self._function(None, text)
            self.file = self.now.get("fl", "")  # callgrind names it again where it is another than the last function's

    def _function(self, object_name: str | None, name: str) -> int:
        home = object_name or self.now.get("ob") or self.now.get("fl", "")
        return self.functions.setdefault(Function(home, _RECURSION.sub("", name)), len(self.functions))

    def _header(self, key: str, colon: str, value: str) -> None:
        value = value.strip()
        if key == "desc":
            about, _, text = (part.strip() for part in value.partition(":"))
            if about == _MARK:
                self.mark = text
                return
            self.descriptions[about] = text
            if about == _TRIGGER:
                self._part(text.partition(_CLIENT)[2].strip())
        elif key == "events":
            events = tuple(value.split())
            if self.events not in ((), events) or len(events) > _MOST_EVENTS:
                raise LogError("its parts count different events; give each as a profile of its own")
            self.events = events
        elif key == "part":
            self.has_end = False
        elif key == "thread":
            self.thread = value
        elif key == "totals" or (key == "summary" and "version" not in self.header):
            # Cachegrind, which has no versions, ends with a summary; callgrind's stands before the costs of a part.
            self.has_end = True
            self.totals = [sum(pair) for pair in zip_longest(self.totals, _numbers(value.split()), fillvalue=0)]
        elif colon and key.isalpha():
            self.header.setdefault(key, value)
            if key == "positions":
                self.positions = len(value.split())
                self.has_lines = "line" in value.split()
        elif key:
            self.skipped += 1

    def _part(self, said: str) -> None:
        """Begin a part of a callgrind profile: set the mark of its lines, and what the program said at its end.

        Where callgrind keeps threads apart, what a thread does without a mark of its own counts to those of the others.
        """
        own = self.open_marks.get(self.thread)
        innermost = {names[-1] for names in ([own] if own else self.open_marks.values()) if names}
        self.mark = _AND.join(sorted(innermost)) or OUTSIDE
        if not self.are_marks_told:
            self.mark = _UNTOLD
        event, _, self.frame = said.partition("\t")
        about = _SAID.fullmatch(event)
        if about is None:
            self.samples += said == SAMPLE
            self.frame = said
            if said in (SAMPLE, _RESUMED):
                self.frame = f"{SAMPLE} {self.samples}"
            return
        thread = self.thread or about["thread"]
        if self.marked_by.get(thread) != about["thread"]:  # valgrind gives the number of an ended thread to a new one
            self.marked_by[thread], self.open_marks[thread] = about["thread"], []
        marks = self.open_marks[thread]
        name = about["name"].strip() or '""'
        if about["sign"] == "+":
            marks.append(name)
        elif about["sign"] == "!":
            self.are_marks_told = False
        elif name in marks:
            del marks[len(marks) - 1 - marks[::-1].index(name)]

    def costs(self) -> CallgrindProfile:
        """The profile in all lines that were fed."""
        own = np.zeros((len(self.sizes), len(self.events)))
        missing = [0] * (len(self.events) - len(self.totals))  # zeros at the end of a line are not written
        own[np.arange(len(self.events)) < np.array(self.sizes)[:, None]] = self.own
        return CallgrindProfile(
            header=self.header,
            descriptions=self.descriptions,
            functions=tuple(self.functions),
            spots=tuple(self.spots),
            places=np.array(self.places, dtype=np.int64),
            spot_of=np.array(self.spot_of, dtype=np.int64),
            addresses=np.array(self.addresses, dtype=np.int64),
            own=Columns(self.events, own),
            calls=tuple(self.calls),
            has_addresses=self.header.get("positions", "").startswith("instr"),
            totals=np.array([*self.totals, *missing][: len(self.events)], dtype=np.float64) if self.has_end else None,
            lines=self.lines,
            skipped=self.skipped,
        )


def parse(lines: Iterable[str]) -> CallgrindProfile:
    """The profile in the lines of a callgrind or cachegrind file.

    Raises LogError, without the path, if there is no cost in it.
    """
    walk = _CallgrindLines()
    for line in lines:
        walk.feed(line)
    if not (walk.places and walk.events):
        raise LogError("this profile holds no costs: the program was killed before valgrind wrote them")
    return walk.costs()


def _numbers(words: Sequence[str]) -> list[int]:
    """Parse words of a callgrind file as whole numbers from 0 to 2^53. Raises ValueError for others."""
    numbers = list(map(int, words))
    if numbers and not 0 <= min(numbers) <= max(numbers) < _MOST:
        raise ValueError(words)
    return numbers


def _moved(address: int, text: str) -> int:
    if text == "*":
        return address
    if text[0] in "+-":
        return (address + int(text, 0)) & _HIGHEST
    return int(text, 16 if text.startswith("0x") else 10) & _HIGHEST
