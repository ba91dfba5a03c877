"""Where to cut a text: everywhere that differs."""

import re


def places(text, last=0):
    """Places at which to end a text, from `last` characters before its end (0: from its start).

    Of a run of letters, of digits, of blanks or of one sign: before it, after its first two, before its last, and after
    it. Where in the middle of a word, a number or a ruled line a log ends makes no difference to a reader that takes
    them whole.
    """
    start = max(len(text) - last, 0) if last else 0
    found = set()
    for run in re.finditer(r"[^\W\d_]+|\d+|\s+|(.)\1*", text):
        begin, end = run.span()
        found |= {begin, begin + 1, begin + 2, end - 1} & set(range(begin, end))
    return sorted(place for place in found if place >= start)
