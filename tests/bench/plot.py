#!/usr/bin/env python3
"""Draws the CSV of a soak as SVG and prints its numbers: plot.py CSV SVG. Exit 1 if instances were lost."""
import sys

WIDTH, LEFT, RIGHT, TOP, PANEL, GAP = 1000, 70, 190, 40, 170, 50
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"]
WARM = 0.2          # of the run: what comes before does not count for slopes and maxima


def read(path):
    lost, rows = None, []
    with open(path, encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        for line in file:
            if line.startswith("# lost"):
                lost = int(line.split()[2])
            elif line.strip():
                rows.append([float(value) for value in line.split(",")])
    return names, rows, lost


def nice(top):
    """A round number at or above top, which four lines divide."""
    step = 1.0
    while step * 10 < top:
        step *= 10
    for factor in (1, 2, 4, 5, 8, 10):
        if step * factor >= top:
            return step * factor
    return step * 10


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {extra}>{words}</text>'


def panel(number, title, seconds, lines):
    """One diagram: lines are (name, values); below 0 is not known."""
    out = []
    y0 = TOP + number * (PANEL + GAP)
    bottom, right = y0 + PANEL, WIDTH - RIGHT
    end = max(seconds[-1], 1)
    top = nice(max([value for _, values in lines for value in values] + [1]))

    def place(second, value):
        return f"{LEFT + (right - LEFT) * second / end:.1f},{bottom - PANEL * value / top:.1f}"

    out.append(text(LEFT, y0 - 10, title, "start", 'font-weight="bold"'))
    for i in range(5):
        y = bottom - PANEL * i / 4
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(text(LEFT - 8, y + 4, f"{top * i / 4:g}", "end"))
    for i in range(7):
        x = LEFT + (right - LEFT) * i / 6
        out.append(f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 4}" stroke="#888"/>')
        out.append(text(x, bottom + 18, f"{end * i / 6 / 60:.1f} min"))
    for i, (name, values) in enumerate(lines):
        points = " ".join(place(s, v) for s, v in zip(seconds, values) if v >= 0)
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        y = y0 + 10 + 20 * i
        out.append(f'<line x1="{right + 15}" y1="{y - 4}" x2="{right + 35}" y2="{y - 4}" stroke="{colour}" stroke-width="3"/>')
        out.append(text(right + 42, y, name, "start"))
    out.append(f'<rect x="{LEFT}" y="{y0}" width="{right - LEFT}" height="{PANEL}" fill="none" stroke="#888"/>')
    return out


def slope(seconds, values):
    """Least squares, per hour."""
    n = len(values)
    mean_s, mean_v = sum(seconds) / n, sum(values) / n
    under = sum((s - mean_s) ** 2 for s in seconds)
    return 3600 * sum((s - mean_s) * (v - mean_v) for s, v in zip(seconds, values)) / under if under else 0.0


def rates(seconds, values):
    return [0.0] + [(b - a) / max(t - s, 0.001) for s, t, a, b in zip(seconds, seconds[1:], values, values[1:])]


def draw(path, seconds, columns):
    services = [(n[:-3], columns[n]) for n in columns if n.endswith("_mb") and n not in ("redis_mb", "kafka_mb")]
    servers = [(n[:-3], columns[n]) for n in columns if n in ("redis_mb", "kafka_mb")]
    lags = [(n[:-4], columns[n]) for n in columns if n.endswith("_lag")]
    done = [("events", rates(seconds, columns["events"])), ("completed", rates(seconds, columns["completed"]))]
    panels = [("events and completed instances per second", done),
              ("latency in ms, windows of 5 s", [("p50", columns["p50_ms"]), ("p99", columns["p99_ms"])]),
              ("resident memory in MB: services", services), ("resident memory in MB: servers", servers),
              ("consumer lag in records", lags)]
    height = TOP + len(panels) * (PANEL + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for i, (title, lines) in enumerate(panels):
        out += panel(i, title, seconds, lines)
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def numbers(seconds, columns, lost):
    first = next((i for i, s in enumerate(seconds) if s >= seconds[-1] * WARM), 0)
    warm = seconds[first:]
    print(f"{seconds[-1]:.0f} s, {columns['events'][-1]:.0f} events, {columns['completed'][-1]:.0f} instances completed; "
          f"warm from {seconds[first]:.0f} s on")
    print(f"{'MB':<14}{'start':>9}{'warm':>9}{'end':>9}{'max':>9}{'MB/h':>9}")
    for name, values in columns.items():
        if name.endswith("_mb"):
            print(f"{name[:-3]:<14}{values[0]:>9.1f}{values[first]:>9.1f}{values[-1]:>9.1f}{max(values[first:]):>9.1f}"
                  f"{slope(warm, values[first:]):>9.1f}")
    for name, values in columns.items():
        if name.endswith("_lag"):
            print(f"lag {name[:-4]:<28} max {max(values[first:]):.0f}, at the end {values[-1]:.0f}")
    p99 = columns["p99_ms"][first:]
    known = sorted(p99)
    print(f"p99 of a window: worst {max(p99):.0f} ms, median {known[len(known) // 2]:.0f} ms; p50 median "
          f"{sorted(columns['p50_ms'][first:])[len(known) // 2]:.0f} ms")
    # while events come, every window must complete something
    sending = [i for i in range(1, len(seconds)) if columns["events"][i] > columns["events"][i - 1]]
    stalls = sum(1 for i in sending if columns["completed"][i] == columns["completed"][i - 1])
    print(f"stalls (windows of 5 s without a completion): {stalls}")
    print(f"lost: {lost if lost is not None else 'the run was cut short'}")


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    names, rows, lost = read(sys.argv[1])
    if len(rows) < 2:
        print("fewer than two samples", file=sys.stderr)
        return 1
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    seconds = columns.pop("seconds")
    draw(sys.argv[2], seconds, columns)
    numbers(seconds, columns, lost)
    return 0 if lost == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
