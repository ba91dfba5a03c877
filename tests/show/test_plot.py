"""Texts in a plot: on a phone and on a wide page none lies on a dot, on another text, or on a line."""

from hypothesis import given
from hypothesis import strategies as st

from eprof.show.page import plot

X, Y = plot.Axis(0.1, 100.0), plot.Axis(1.0, 1000.0)
ROOF = plot.Line([(x, min(500.0, 50 * x)) for x in (0.1 * 1000 ** (step / 192) for step in range(193))])
below = st.tuples(st.floats(0.2, 90.0), st.floats(0.02, 0.95), st.floats(0.01, 1.0))


@given(st.lists(below, min_size=1, max_size=12), st.sampled_from([plot._NARROW, plot._WIDE]))
def test_names_lie_on_nothing(kernels, width):
    dots = [
        plot.Dot(x, max(1.0, share * min(500.0, 50 * x)), area, f"kernel_{place}", "")
        for place, (x, share, area) in enumerate(kernels)
    ]
    note = plot.Note(ROOF.points[60:100], "memory: 50 B/s")
    panel = plot.Panel("Speed", "flop/s", "flop_per_s", X, Y, [ROOF], dots, [10.0], height=plot.LARGE, notes=[note])
    room = plot._Room(panel, width)
    boxes = [
        plot._box(width * X.position(dot.x) + tag[0], panel.top(dot.y) + tag[1], tag[2], dot.name)
        for dot, tag in room.names.items()
        if tag
    ]
    assert len(boxes) or len(dots) > 1
    for left, top, right, bottom in boxes:
        assert left >= 0 and right <= width and bottom <= panel.height
        assert not any(left <= width * X.position(x) <= right and top <= panel.top(y) <= bottom for x, y in ROOF.points)
        for dot in dots:
            x, y = width * X.position(dot.x), panel.top(dot.y)
            assert not (left < x < right and top < y < bottom)
    for place, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:place]:
            assert left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom
