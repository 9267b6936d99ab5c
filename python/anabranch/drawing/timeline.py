"""The timeline of a profile as SVG. Each thread has a row, and each operator is a bar; the width of the bar shows its
time."""
from html import escape

from .. import _core
from ..profiling.files import write_whole

__all__ = ["draw_timeline", "timeline_svg"]

FONT = 'font-family="Helvetica, Arial, sans-serif"'
LEFT, WIDTH, TOP, BAR, HEIGHT = 70.0, 700.0, 34.0, 34.0, 46.0
LEGEND_ROW = 18.0
NODE, HELP, RUN, ON_DEVICE = 0, 1, 2, 6
PAUSE_NS = 3000
ENGINE, REST = "#c9c9c9", "#dcdcdc"
COLOURS = ("#8ab6d6", "#f2a97e", "#93c98f", "#c7a4d8", "#e8c95e", "#e58a9b", "#7fcac3", "#b8a58c", "#a3b0e0", "#d6b3a0")


def _colors(threads):
    """Title -> color, different ones for the titles that take the most time."""
    total = {}
    for events in threads.values():
        for title, kind, begin, end in events:
            if kind in (NODE, HELP, ON_DEVICE):
                total[title] = total.get(title, 0) + end - begin
    ranked = sorted(total, key=lambda title: (-total[title], title))
    return {title: COLOURS[at] if at < len(COLOURS) else REST for at, title in enumerate(ranked)}


def _window(threads, runs):
    """Start and end of the last `runs` runs."""
    spans = sorted((begin, end) for events in threads.values() for _, kind, begin, end in events if kind == RUN)
    if not spans:
        return 0, 1
    spans = spans[-runs:]
    return spans[0][0], max(end for _, end in spans)


def _bar(title, kind, begin, end, zero, scale, y, colors):
    x, width = LEFT + (begin - zero) * scale, max((end - begin) * scale, 0.15)
    color = colors.get(title, ENGINE)
    what = "%s%s, %.1f us" % (title, " (help with a loop)" if kind == HELP else "", (end - begin) / 1e3)
    opacity = ' fill-opacity="0.45"' if kind == HELP else ""
    out = '<rect x="%.2f" y="%.1f" width="%.2f" height="%.0f" fill="%s"%s><title>%s</title></rect>' % (
        x, y, width, BAR, color, opacity, escape(what, quote=False))
    if kind != HELP and width > 6.6 * len(title) + 6:
        out += '<text x="%.1f" y="%.1f" font-size="11.5" text-anchor="middle">%s</text>' % (
            x + width / 2, y + BAR / 2 + 3.5, escape(title, quote=False))
    return out


def _joined(events):
    """The events in order; consecutive chunks of one loop on a thread become one."""
    out = []
    for title, kind, begin, end in sorted(events, key=lambda event: event[2]):
        if out and kind == HELP and out[-1][:2] == (title, kind) and begin - out[-1][3] < PAUSE_NS:
            out[-1] = (title, kind, out[-1][2], end)
        else:
            out.append((title, kind, begin, end))
    return out


def _name(thread):
    """Name of a thread, or of a queue of a device such as "CUDAPlace(0) up"."""
    if thread >= 0:
        return "thread %d" % thread
    return _core.queue_name(-1 - thread).replace("CUDAPlace(", "").replace(")", "")


def _axis(span_ns, bottom):
    """The axis of time, with at most 13 marks, in microseconds or milliseconds."""
    step = 1.0
    while span_ns / step > 12:
        step *= 2 if str(int(step))[0] in "15" else 2.5
    unit, name = (1e6, "ms") if span_ns >= 1e6 else (1e3, "us")
    out, at = [], 0.0
    while at <= span_ns:
        x = LEFT + at * WIDTH / span_ns
        out.append('<path d="M%.1f %.0fV%.0f" stroke="#ddd"/><text x="%.1f" y="%.0f" font-size="11" '
                   'text-anchor="middle" fill="#555">%g %s</text>'
                   % (x, TOP - 6, bottom, x, bottom + 14, at / unit, name))
        at += step
    return out


def _legend(colors, y):
    """The titles that have their own color, in rows; pale bars are shares of another thread's loops."""
    out, x = [], LEFT
    entries = [(title, color) for title, color in colors.items() if color != REST]
    for title, color in entries + [("others", REST), ("engine", ENGINE)]:
        width = 6.5 * len(title) + 32
        if x + width > LEFT + WIDTH:
            x, y = LEFT, y + LEGEND_ROW
        out.append('<rect x="%.0f" y="%.0f" width="11" height="11" fill="%s"/><text x="%.0f" y="%.0f" '
                   'font-size="11.5">%s</text>' % (x, y - 9, color, x + 15, y, escape(title, quote=False)))
        x += width
    return out, y


def timeline_svg(report, runs=2):
    """The picture that :func:`draw_timeline` writes.

    Args:
        report (Report): measurements.
        runs (int): number of the last runs to show, at least 1.

    Returns:
        str: an SVG document.

    Raises:
        ValueError: ``runs`` is below 1.
    """
    if runs < 1:
        from ..fluid.errors import InvalidValue
        raise InvalidValue("timeline_svg: runs must be at least 1, got %r" % (runs,))
    threads = report.threads()
    zero, end = _window(threads, runs)
    span = max(end - zero, 1)
    shown = {thread: [e for e in events if e[1] != RUN and e[2] < end and e[3] > zero]
             for thread, events in threads.items()}
    shown = {thread: events for thread, events in sorted(shown.items()) if events}
    colors = _colors(shown)
    bottom = TOP + HEIGHT * len(shown)
    legend, height = _legend(colors, bottom + 38)
    height += 12
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" %s>'
           % (LEFT + WIDTH + 20, height, LEFT + WIDTH + 20, height, FONT),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="12" y="20" font-size="13" font-weight="bold">Threads during %d run%s</text>'
           % (runs, "" if runs == 1 else "s")]
    out += _axis(span, bottom)
    for row, (thread, events) in enumerate(shown.items()):
        y = TOP + HEIGHT * row
        out.append('<text x="12" y="%.0f" font-size="11">%s</text>' % (y + BAR / 2 + 4, _name(thread)))
        out += [_bar(*event, zero=zero, scale=WIDTH / span, y=y, colors=colors) for event in _joined(events)]
    return "\n".join(out + legend + ["</svg>", ""])


def draw_timeline(report, path, runs=2):
    """Writes :func:`timeline_svg` to a file.

    Raises:
        ValueError: ``runs`` is below 1.
        OSError: the file cannot be written.
    """
    write_whole(path, timeline_svg(report, runs).encode("utf-8"))
