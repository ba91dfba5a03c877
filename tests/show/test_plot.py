"""Texts in a plot: on a phone and on a wide page none lies on a dot, on another text, or on a line."""

from hypothesis import given
from hypothesis import strategies as st

from eprof.show import plot

X, Y = plot.Axis(0.1, 100.0), plot.Axis(1.0, 1000.0)
ROOF = plot.Line([(x, min(500.0, 50 * x)) for x in (0.1 * 1000 ** (step / 192) for step in range(193))])
below = st.tuples(st.floats(0.2, 90.0), st.floats(0.02, 0.95), st.floats(0.01, 1.0))


@given(st.lists(below, min_size=1, max_size=12), st.sampled_from([plot._NARROW, plot._WIDE]))
def test_names_lie_on_nothing(kernels, widths):
    dots = [
        plot.Dot(x, max(1.0, share * min(500.0, 50 * x)), area, f"kernel_{place}", "")
        for place, (x, share, area) in enumerate(kernels)
    ]
    note = plot.Note(ROOF.points[60:100], "memory: 50 B/s")
    panel = plot.Panel("Speed", "flop/s", "flop_per_s", X, Y, [ROOF], dots, [10.0], height=plot.LARGE, notes=[note])
    room = plot._Room(panel, widths)
    largest = max(dots, key=lambda dot: dot.share)
    named = [(dot, tag) for dot, tag in room.names.items() if tag]
    assert named or len(dots) > 1
    for width in widths:
        boxes = []
        for dot, tag in named:
            x, y = width * X.position(dot.x), panel.top(dot.y)
            boxes.append(plot._box(x + tag[0], y + tag[1], tag[2], dot.name))
        for (of, _), (left, top, right, bottom) in zip(named, boxes, strict=True):
            assert left >= 0 and right <= width and bottom <= panel.height
            if of is not largest:
                drawn = [(width * X.position(x), panel.top(y)) for x, y in ROOF.points]
                assert not any(left <= x <= right and top <= y <= bottom for x, y in drawn)
                assert not left <= width * X.position(10.0) <= right  # the line of the balance
            for dot in dots:
                x, y = width * X.position(dot.x), panel.top(dot.y)
                assert not (left < x < right and top < y < bottom)
        for place, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[:place]:
                is_beside = left >= other[2] or other[0] >= right
                assert is_beside or top >= other[3] + plot._BETWEEN or other[1] >= bottom + plot._BETWEEN


@given(below)
def test_the_largest_kernel_has_a_name_at_every_width(largest):
    """Between two balances too, where a line lies behind it wherever it stands."""
    x, share, _ = largest
    dot = plot.Dot(x, max(1.0, share * min(500.0, 50 * x)), 1.0, "comp…279_gpu", "")
    small = plot.Dot(1.75, 20.0, 0.3, "comp…309_gpu", "")
    for height, widths in ((plot.HEIGHT, plot._NARROW), (plot.LARGE, plot._NARROW), (plot.LARGE, plot._WIDE)):
        panel = plot.Panel("Speed", "flop/s", "flop_per_s", X, Y, [ROOF], [dot, small], [7.35, 14.7], height=height)
        assert plot._Room(panel, widths).names[dot]
