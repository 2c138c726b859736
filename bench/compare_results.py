"""What bench/compare.py measured: the rows of its table, their record as JSON, and the page made from it."""
import json
import statistics

BEGIN = "<!-- bench/compare.py: begin (it writes all up to its end mark) -->"
END = "<!-- bench/compare.py: end -->"
COLUMNS = ("case", "Ingot", "limit of the machine", "share of the limit", "peer", "ratio", "asked",
           "spread: min..max")
EXPLANATION = """\
Medians of turns, Ingot and its peer one after the other in each. A ratio of speed or time says how many
times faster Ingot is; one of memory is Ingot's peak over the peer's. Memory is the peak resident memory of a
process that trains; for a single operation, what it takes above its inputs. Limits are measured on the same
machine: a training step's is its model's floating-point operations at the speed of the fastest matrix
product, so that the share is its MFU.
✓ reached, ✗ missed."""


class PageError(Exception):
    """A page without the marks between which the table belongs."""


def spread_of(readings, measure):
    found = [reading.values[measure] * measure.scale for reading in readings]
    return [min(found), max(found)]


def row_of(question, ours, peers, peer_failure):
    """One row: Ingot's readings beside the peer's; `peer_failure` says why those are not there."""
    measure = question.measure
    mine = statistics.median(reading.values[measure] for reading in ours)
    row = {"measure": measure.name, "unit": measure.unit, "ours": mine * measure.scale,
           "spread": spread_of(ours, measure)}
    if measure in ours[0].limits:
        limit = statistics.median(reading.limits[measure] for reading in ours)
        row |= {"limit": limit * measure.scale, "share": measure.share(mine, limit)}
    if peer_failure:
        row["peer_failure"] = peer_failure
    elif peers:
        theirs = statistics.median(reading.values[measure] for reading in peers)
        row |= {"peer": theirs * measure.scale, "ratio": measure.share(mine, theirs),
                "peer_spread": spread_of(peers, measure)}
    row["asked"] = [verdict(asked, row) for asked in question.asked]
    return row


def verdict(asked, row):
    at_most = row["measure"] == "peak memory"
    value = row.get(asked.of)
    reached = None if value is None else (value <= asked.bound if at_most else value >= asked.bound)
    return {"of": asked.of, "bound": asked.bound, "at_most": at_most, "reached": reached}


def exit_status(rows):
    if any("peer_failure" in row for row in rows):
        return 2
    return 1 if any(asked["reached"] is False for row in rows for asked in row["asked"]) else 0


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def factor(value):
    return f"{value:.2f}×" if value < 10 else f"{value:.1f}×"


def asked_text(asked):
    bound = f"{asked['bound']:.0%}" if asked["of"] == "share" else f"{asked['bound']:g}×"
    mark = {True: " ✓", False: " ✗", None: ""}[asked["reached"]]
    return f"{'≤' if asked['at_most'] else '≥'} {bound}{mark}"


def cells(case, row):
    unit = row["unit"]
    spread = "..".join(number(end) for end in row["spread"])
    peer = row.get("peer_failure", "")
    if "peer" in row:
        peer = f"{number(row['peer'])} {unit}"
        spread += ", peer " + "..".join(number(end) for end in row["peer_spread"])
    return (f"{case}, {row['measure']}", f"{number(row['ours'])} {unit}",
            f"{number(row['limit'])} {unit}" if "limit" in row else "",
            f"{row['share']:.1%}" if "share" in row else "", peer,
            factor(row["ratio"]) if "ratio" in row else "", ", ".join(map(asked_text, row["asked"])), spread)


def table(records):
    """The records' rows as a Markdown table that also reads well on a terminal."""
    lines = [COLUMNS] + [cells(record["case"], row) for record in records for row in record["rows"]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    lines.insert(1, ["-" * width for width in widths])
    padded = [[cell.ljust(width) for cell, width in zip(line, widths)] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in padded)


def limits_text(peak):
    bf16, f32, memory = (peak[key] / 1e9 for key in ("bf16_flops", "f32_flops", "memory_bytes_per_second"))
    return f"bf16 products {bf16:,.0f} GFLOP/s, f32 products {f32:,.0f} GFLOP/s, memory {memory:.1f} GB/s"


def runs_text(records):
    """A line for each run that the records come from, with the cases that it measured."""
    runs = {}
    for record in records:
        runs.setdefault(json.dumps(record["run"], sort_keys=True), []).append(record["case"])
    lines = []
    for run, names in runs.items():
        run = json.loads(run)
        lines.append(f"- {run['date']}, `{run['command']}`: {', '.join(names)}. "
                     f"{', '.join(run['versions'])}; medians of {run['turns']}; "
                     f"load average before it {run['load']:.1f}; limits: {limits_text(run['peak'])}.")
    return "\n".join(lines)


def load(path):
    return json.loads(path.read_text()) if path.exists() else []


def save(path, record):
    """Puts the record in the file in place of the one of the same machine and case."""
    same = (record["machine"], record["case"])
    kept = [each for each in load(path) if (each["machine"], each["case"]) != same]
    path.write_text(json.dumps(kept + [record], indent=1, ensure_ascii=False) + "\n")


def write_page(page, records, order):
    """Writes the records, a section for each machine, between the page's marks."""
    before, after = parts_of(page)
    sections = [EXPLANATION] if records else ["Nothing measured by bench/compare.py yet."]
    for machine in dict.fromkeys(record["machine"] for record in records):
        its = [record for record in records if record["machine"] == machine and record["case"] in order]
        its.sort(key=lambda record: order.index(record["case"]))
        sections += [f"### {machine}", table(its), runs_text(its)]
    page.write_text(before + BEGIN + "\n\n" + "\n\n".join(sections) + "\n\n" + END + after)


def parts_of(page):
    """The text before and after the marks."""
    text = page.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise PageError(f"{page.name}: needs these two lines once and in this order: {BEGIN} and {END}")
    return text[:text.index(BEGIN)], text[text.index(END) + len(END):]
