"""What each thread did, as SVG: a lane a thread, a bar an operator, its width the time."""
import zlib
from xml.sax.saxutils import escape

from ..profiling.files import write_whole

__all__ = ["draw_lanes", "lanes_svg"]

FONT = 'font-family="Helvetica, Arial, sans-serif"'
LEFT, WIDTH, TOP, BAR, LANE = 70.0, 1080.0, 34.0, 30.0, 46.0
NODE, HELP, RUN = 0, 1, 2
ENGINE = "#c9c9c9"
COLOURS = ("#8ab6d6", "#f2a97e", "#93c98f", "#c7a4d8", "#e8c95e", "#e58a9b", "#7fcac3", "#b8a58c", "#a3b0e0", "#d6b3a0")


def _colour(title):
    """One for each title, the same in every picture."""
    return COLOURS[zlib.crc32(title.encode("utf-8")) % len(COLOURS)]


def _window(lanes, runs):
    """Begin and end of the last `runs` runs."""
    spans = sorted((begin, end) for events in lanes.values() for _, kind, begin, end in events if kind == RUN)
    if not spans:
        return 0, 1
    spans = spans[-runs:]
    return spans[0][0], max(end for _, end in spans)


def _bar(title, kind, begin, end, zero, scale, y):
    x, width = LEFT + (begin - zero) * scale, max((end - begin) * scale, 0.15)
    colour = ENGINE if kind > RUN else _colour(title)
    what = "%s%s, %.1f us" % (title, " (help with a loop)" if kind == HELP else "", (end - begin) / 1e3)
    opacity = ' fill-opacity="0.45"' if kind == HELP else ""
    out = '<rect x="%.2f" y="%.1f" width="%.2f" height="%.0f" fill="%s"%s><title>%s</title></rect>' % (
        x, y, width, BAR, colour, opacity, escape(what))
    if kind != HELP and width > 6.2 * len(title):
        out += '<text x="%.1f" y="%.1f" font-size="9.5" text-anchor="middle">%s</text>' % (
            x + width / 2, y + BAR / 2 + 3.5, escape(title))
    return out


def _axis(span_ns, bottom):
    """A line with a mark every so often, in microseconds or milliseconds."""
    step = 1.0
    while span_ns / step > 12:
        step *= 2 if str(int(step))[0] in "15" else 2.5
    unit, name = (1e6, "ms") if span_ns >= 1e6 else (1e3, "us")
    out, at = [], 0.0
    while at <= span_ns:
        x = LEFT + at * WIDTH / span_ns
        out.append('<path d="M%.1f %.0fV%.0f" stroke="#ddd"/><text x="%.1f" y="%.0f" font-size="9.5" '
                   'text-anchor="middle" fill="#555">%g %s</text>'
                   % (x, TOP - 6, bottom, x, bottom + 14, at / unit, name))
        at += step
    return out


def lanes_svg(report, runs=2):
    """The picture that :func:`draw_lanes` writes.

    Args:
        report (Report): what was measured.
        runs (int): how many of the last runs to show, at least 1.

    Returns:
        str: an SVG document.

    Raises:
        ValueError: ``runs`` is below 1.
    """
    if runs < 1:
        from ..fluid.errors import InvalidValue
        raise InvalidValue("lanes_svg: runs is %r, expected at least 1" % (runs,))
    lanes = report.lanes()
    zero, end = _window(lanes, runs)
    span = max(end - zero, 1)
    shown = {lane: [e for e in events if e[1] != RUN and e[2] < end and e[3] > zero] for lane, events in lanes.items()}
    shown = {lane: events for lane, events in sorted(shown.items()) if events}
    bottom = TOP + LANE * len(shown)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" %s>'
           % (LEFT + WIDTH + 20, bottom + 24, LEFT + WIDTH + 20, bottom + 24, FONT),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="12" y="20" font-size="13" font-weight="bold">What each thread did in %d run%s</text>'
           % (runs, "" if runs == 1 else "s")]
    out += _axis(span, bottom)
    for row, (lane, events) in enumerate(shown.items()):
        y = TOP + LANE * row
        out.append('<text x="12" y="%.0f" font-size="11">thread %d</text>' % (y + BAR / 2 + 4, lane))
        out += [_bar(*event, zero=zero, scale=WIDTH / span, y=y) for event in sorted(events, key=lambda e: e[2])]
    return "\n".join(out + ["</svg>", ""])


def draw_lanes(report, path, runs=2):
    """Writes :func:`lanes_svg` to a file.

    Raises:
        ValueError: ``runs`` is below 1. OSError: the file cannot be written.
    """
    write_whole(path, lanes_svg(report, runs).encode("utf-8"))
