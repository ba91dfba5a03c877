"""Joules of a timeline, computed another way: moment by moment, in fractions, from samples and marks alone."""

from fractions import Fraction


def steps_of_power(samples):
    """Samples (time, watts or None) as steps (begin, end, watts): each holds until the next, the last as long as most.

    Where some power is not known, so that joules are a lower bound, the last sample is held for nothing.
    """
    times = [Fraction(time) for time, _ in samples]
    gaps = sorted(after - before for before, after in zip(times, times[1:], strict=False))
    middle = len(gaps) // 2
    usual = gaps[middle] if len(gaps) % 2 else (gaps[middle - 1] + gaps[middle]) / 2
    ends = [*times[1:], times[-1] + usual]
    lasts = sorted(end - begin for begin, end in zip(times, ends, strict=True))
    middle = len(lasts) // 2
    usual = lasts[middle] if len(lasts) % 2 else (lasts[middle - 1] + lasts[middle]) / 2
    steps = [
        (begin, end, None if watts is None or end - begin > 10 * usual else Fraction(watts))
        for (begin, end), (_, watts) in zip(zip(times, ends, strict=True), samples, strict=True)
    ]
    known = [watts is not None for _, _, watts in steps]
    return steps[:-1] if known[-1] and any(known[:-1]) and not all(known) else steps


def joules(steps, marks):
    """By function: exclusive and inclusive joules, and for how long power is not known; and the same of no function.

    marks: (name, begin, end). The innermost function is the one that began last, of those that are open.
    """
    first, last = steps[0][0], steps[-1][1]
    marks = sorted(marks, key=lambda mark: (mark[1], -mark[2]))
    marks = [(name, max(Fraction(begin), first), min(Fraction(end), last)) for name, begin, end in marks]
    marks = [mark for mark in marks if mark[1] < mark[2]]
    edges = sorted(
        {edge for begin, end, _ in steps for edge in (begin, end)} | {edge for mark in marks for edge in mark[1:]}
    )
    own, whole, unknown = {}, {}, {}
    for begin, end in zip(edges, edges[1:], strict=False):
        watts = next(watts for start, stop, watts in steps if start <= begin and end <= stop)
        open_ = [name for name, start, stop in marks if start <= begin and end <= stop]
        owner = open_[-1] if open_ else None
        if watts is None:
            unknown[owner] = unknown.get(owner, 0) + (end - begin)
            continue
        own[owner] = own.get(owner, 0) + watts * (end - begin)
        for name in set(open_):
            whole[name] = whole.get(name, 0) + watts * (end - begin)
    return own, whole, unknown
