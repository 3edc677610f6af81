"""Tables of what was measured. A ratio is taken within a repeat, and then the median of the repeats."""
import statistics

from .dialects import DIALECTS
from .peers import CUT_GAP, WAYS

MIB = 2 ** 20
WORDS = {"fail503": "503", "limit7": "429, `Retry-After: 7`", "reset": "reset before an answer", "hang": "silence (3 s are allowed)",
         "cut0": "stream cut before content", WAYS[-1]: "stream cut after 3 pieces"}


def dig(told, *path):
    for step in path:
        told = told.get(step) if isinstance(told, dict) else None
    return told


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def over(visits, *path):
    return median(dig(visit, *path) for visit in visits)


def ratio(ours, theirs, *path):
    others = {visit["repeat"]: visit for visit in theirs}
    pairs = ((dig(visit, *path), dig(others.get(visit["repeat"]), *path)) for visit in ours)
    return median(one / other for one, other in pairs if one is not None and other)


def added(visits, part, figure, quantile):
    """Through the gateway less without it."""
    def one(visit):
        through, direct = (dig(visit, *part, side, figure, quantile) for side in ("through", "direct"))
        return None if through is None or direct is None else through - direct
    return median(one(visit) for visit in visits)


def quantile(values, share):
    values = sorted(value for value in values if value is not None)
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


def show(value, form="{:,.0f}"):
    return "–" if value is None else form.format(value)


def table(title, note, heads, rows):
    if not rows:
        return
    print(f"\n### {title}\n\n{note}\n")
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "--:|" * (len(heads) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def throughput(results):
    rows = []
    for name, visits in results.items():
        rates = [rate for visit in visits if (rate := dig(visit, "throughput", "rate"))]
        if not rates:
            continue
        nginx = results.get("nginx", [])
        rows.append([name, f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
                     show(ratio(visits, nginx, "throughput", "rate"), "{:.3f}"), show(over(visits, "throughput", "cpu_us"), "{:,.1f}"),
                     show(ratio(visits, nginx, "throughput", "cpu_us"), "{:.2f}"),
                     f"{show(over(visits, 'throughput', 'p50_us'))} / {show(over(visits, 'throughput', 'p99_us'))}",
                     show(sum(dig(visit, "throughput", "bad") or 0 for visit in visits))])
    table("Throughput", "64 connections, whole answers, the mock waits for nothing. `direct` is the mock alone, and its CPU the mock's.",
          ["", "requests/s", "of nginx's", "CPU µs/request", "of nginx's", "p50 / p99 µs", "bad"], rows)


def latency(results):
    rows = []
    for name, visits in results.items():
        if name == "direct" or over(visits, "latency", "rate") is None:
            continue
        row = [name, show(over(visits, "latency", "rate"))]
        for wait in ("wait0", "wait60"):
            row += [show(added(visits, ("latency", wait), "latency_us", share)) for share in ("p50", "p99")]
        bad = sum(told["requests"] - told["status"].get("200", 0) for visit in visits for wait in ("wait0", "wait60")
                  if (told := dig(visit, "latency", wait, "through")))
        rows.append([*row, show(over(visits, "latency", "wait0", "cpu_us")), show(bad)])
    table("Added latency, µs", "At a fixed rate, from the instant a request was due; through the gateway less without it.",
          ["", "requests/s", "0 ms p50", "0 ms p99", "60 ms p50", "60 ms p99", "CPU µs/request", "bad"], rows)


def streams(results):
    rows = []
    for name, visits in results.items():
        if name == "direct" or over(visits, "streams", "rate") is None:
            continue
        whole = sum(dig(visit, "streams", kind, "through", "done") or 0 for visit in visits for kind in ("paced", "burst"))
        asked = sum(dig(visit, "streams", kind, "through", "requests") or 0 for visit in visits for kind in ("paced", "burst"))
        burst = median(dig(visit, "streams", "burst", "through", "pieces") / dig(visit, "streams", "burst", "through", "seconds")
                       for visit in visits if dig(visit, "streams", "burst"))
        rows.append([name, show(over(visits, "streams", "rate")),
                     *(show(added(visits, ("streams", "paced"), figure, "p50")) for figure in ("first_us", "delay_us")),
                     show(over(visits, "streams", "paced", "cpu_us"), "{:.1f}"), show(burst),
                     show(over(visits, "streams", "burst", "cpu_us"), "{:.2f}"),
                     show(ratio(visits, results.get("nginx", []), "streams", "burst", "cpu_us"), "{:.2f}"), f"{whole:,} / {asked:,}"])
    table("Streams of 200 pieces", "Paced: 5 ms between two pieces. Burst: no pause, 8 connections, each with the next stream at once.",
          ["", "paced streams/s", "added to first content, p50 µs", "added to each piece, p50 µs", "CPU µs/piece paced", "burst pieces/s",
           "CPU µs/piece burst", "of nginx's", "whole"], rows)


def memory(results):
    rows = []
    for name, visits in results.items():
        if name != "direct" and visits:
            cold = [seconds * 1000 for visit in visits for seconds in visit.get("cold", [])]
            sizes = (over(visits, "resident_idle"), over(visits, "throughput", "resident"), over(visits, "resident_end"))
            rows.append([name, *(show(size and size / MIB, "{:,.1f}") for size in sizes),
                         f"{show(median(cold))} ({show(min(cold, default=None))} to {show(max(cold, default=None))})"])
    table("Memory and start", "Resident memory of all its processes, MiB. Start: from the new process to the first 200 on a completion, ms.",
          ["", "idle", "64 connections, most", "after streams", "start"], rows)


def open_streams(tries):
    rows = [[f"{told['asked']:,}", f"{told.get('begun', 0):,}", f"{told.get('open_later') or 0:,}", f"{told['before'] / MIB:,.1f}",
             f"{told['after'] / MIB:,.1f}", f"{told['bytes_each'] / 1000:,.1f}"] for told in tries]
    table("Open streams", "koboshi alone, from its simulated provider: one piece, then silence. The kernel's own memory for sockets is not in it.",
          ["asked for", "with content", "open 3 s later", "MiB before", "MiB with them", "KB each"], rows)


def above(ours, theirs, part, figure, share):
    """What we add less what they add."""
    one, other = (added(visits, part, figure, share) for visits in (ours, theirs))
    return None if one is None or other is None else one - other


def within(visits, pair, base, *path):
    """A figure of one pair of dialects, as a multiple of another pair's in the same visit."""
    pairs = ((dig(visit, pair, *path), dig(visit, base, *path)) for visit in visits)
    return median(one / other for one, other in pairs if one is not None and other)


def dialects(told):
    ours, nginx = told.get("koboshi", []), told.get("nginx", [])
    rows = []
    for one in DIALECTS:
        pair = f"{one.name} {one.name}"
        if over(ours, pair, "throughput", "rate") is not None:
            figures = (show(value, form) for _, value, _, form, _ in of_dialect(ours, nginx, pair))
            rows.append([one.name, show(over(ours, pair, "throughput", "rate")), *figures])
    table("Each dialect by itself", "koboshi, client and provider speak the same; compared to nginx in the same dialect. The measures are those above.",
          ["", "requests/s", "of nginx's", "CPU per request, of nginx's", "added p50, µs", "added p99 above nginx's", "first content above nginx's, p50 µs",
           "CPU per piece in a burst, of nginx's"], rows)
    rows = []
    for client in DIALECTS:
        base = f"{client.name} {client.name}"
        for provider in DIALECTS:
            pair = f"{client.name} {provider.name}"
            if provider is client or over(ours, pair, "throughput", "rate") is None:
                continue
            rows.append([f"{client.name} to {provider.name}", show(over(ours, pair, "throughput", "cpu_us"), "{:.1f}"),
                         show(within(ours, pair, base, "throughput", "cpu_us"), "{:.2f}"),
                         *(show(added(ours, (pair, "streams", "paced"), figure, "p50")) for figure in ("first_us", "delay_us")),
                         show(over(ours, pair, "streams", "burst", "cpu_us"), "{:.2f}"),
                         show(within(ours, pair, base, "streams", "burst", "cpu_us"), "{:.2f}")])
    table("Between two dialects", "koboshi, the client's dialect first. Multiples are of the client's dialect by itself, in the same visit.",
          ["", "CPU µs/request", "of its own dialect's", "added to first content, p50 µs", "added to each piece, p50 µs", "CPU µs/piece burst",
           "of its own dialect's"], rows)


def of_dialect(ours, nginx, pair):
    """The goals that hold in every dialect: name, figure, limit, form, whether more is better."""
    return [
        ("requests/s, of nginx's", ratio(ours, nginx, pair, "throughput", "rate"), 0.75, "{:.3f}", True),
        ("CPU per request, of nginx's", ratio(ours, nginx, pair, "throughput", "cpu_us"), 1.4, "{:.2f}", False),
        ("added p50, µs", added(ours, (pair, "latency", "wait0"), "latency_us", "p50"), 150, "{:.0f}", False),
        ("added p99 above nginx's, µs", above(ours, nginx, (pair, "latency", "wait0"), "latency_us", "p99"), 500, "{:.0f}", False),
        ("added to first content above nginx's, p50 µs", above(ours, nginx, (pair, "streams", "paced"), "first_us", "p50"), 100, "{:.0f}", False),
        ("CPU per piece in a burst, of nginx's", ratio(ours, nginx, pair, "streams", "burst", "cpu_us"), 1.7, "{:.2f}", False),
    ]


def waited(way, row):
    """Milliseconds of a whole answer until the spare spoke. A cut comes when the next piece was due, and is the longest silence."""
    return row["gap_us"] / 1000 - CUT_GAP if way == WAYS[-1] else row["first_us"] / 1000


def failover(told):
    for way in WAYS:
        rows = []
        for name, ways in told.items():
            if not (result := ways.get(way)):
                continue
            probes = result["rows"]
            times = [waited(way, row) for row in probes if row["whole"]]
            errors = sorted({row["error"] for row in probes if row["error"]})
            rows.append([name, f"{sum(row['whole'] for row in probes)} / {len(probes)}", show(quantile(times, 0.5), "{:,.1f}"),
                         show(max(times, default=None), "{:,.1f}"), f"{result['primary'] / len(probes):.1f}", f"{result['spare'] / len(probes):.1f}",
                         " ".join(errors)[:70].replace("|", "/") or "–"])
        note = ("From the cut to the first piece of the spare, ms." if way == WAYS[-1]
                else "From the request to the first content, ms.") + " Calls are those of one request."
        table(f"Fall-over: {WORDS[way]}", note, ["", "whole answers", "p50", "most", "calls to the primary", "to the spare", "the client gets"], rows)


def outage(told):
    rows = []
    for name, result in told.items():
        begin, end = result["begin"], result["end"]
        during = [row for row in result["rows"] if begin <= row["due"] < end]
        firsts = [row["first_us"] / 1000 for row in during if row["first_us"] is not None and row["whole"]]
        wasted = [time for time in result["asked"] if begin <= time < end]
        after = [time for time in result["asked"] if time >= end]
        rows.append([name, f"{sum(not row['whole'] for row in result['rows'])} / {len(result['rows'])}", f"{len(wasted)} for {len(during)}",
                     show(quantile(firsts, 0.5), "{:,.1f}"), show(quantile(firsts, 0.99), "{:,.1f}"),
                     show((after[0] - end) / 1e9 if after else None, "{:.1f}"), show(steady(after, end, result["rate"]), "{:.1f}")])
    if told:
        one = next(iter(told.values()))
        table(f"An outage of {(one['end'] - one['begin']) / 1e9:.0f} s", f"The primary answers {one['way']}; {one['rate']:g} streams a second. Times to "
              "first content are those of requests during the outage. Back: until the primary is asked first, and until it has all the traffic.",
              ["", "failed", "wasted calls to the primary", "first content p50, ms", "p99, ms", "asked again, s", "wholly back, s"], rows)


def steady(after, end, rate):
    """Seconds until the primary has nine tenths of the traffic for a second."""
    need = max(1, int(rate * 0.9))
    for at, time in enumerate(after):
        if sum(time <= other < time + 1e9 for other in after[at:]) >= need:
            return (time - end) / 1e9
    return None


def goals(told):
    """What the project wants of itself; nothing depends on it."""
    results = told["visits"]
    ours, nginx = results.get("koboshi", []), results.get("nginx", [])
    cold = median(seconds * 1000 for visit in ours for seconds in visit.get("cold", []))
    memory = over(ours, "throughput", "resident")
    wanted = [
        ("requests/s, of nginx's", ratio(ours, nginx, "throughput", "rate"), 0.75, "{:.3f}", True),
        ("CPU per request, of nginx's", ratio(ours, nginx, "throughput", "cpu_us"), 1.4, "{:.2f}", False),
        ("added p50, µs", added(ours, ("latency", "wait0"), "latency_us", "p50"), 150, "{:.0f}", False),
        ("added p99 above nginx's, µs", above(ours, nginx, ("latency", "wait0"), "latency_us", "p99"), 500, "{:.0f}", False),
        ("added to first content above nginx's, p50 µs", above(ours, nginx, ("streams", "paced"), "first_us", "p50"), 100, "{:.0f}", False),
        ("CPU per piece in a burst, of nginx's", ratio(ours, nginx, "streams", "burst", "cpu_us"), 1.7, "{:.2f}", False),
        ("memory under load, MiB", memory and memory / MIB, 40, "{:.1f}", False),
        ("start, ms", cold, 50, "{:.0f}", False),
        ("an open stream, KB", median(one["bytes_each"] / 1000 for one in told.get("open", [])), 20, "{:.1f}", False),
    ]
    spoken = told.get("dialects", {}).get("koboshi", [])
    for client in DIALECTS:
        base = f"{client.name} {client.name}"
        wanted += [(f"{client.name}: {name}", *rest) for name, *rest in of_dialect(spoken, told.get("dialects", {}).get("nginx", []), base)]
        wanted += [(f"{client.name} to {provider.name}: CPU per request, of its own dialect's",
                    within(spoken, f"{client.name} {provider.name}", base, "throughput", "cpu_us"), 2, "{:.2f}", False)
                   for provider in DIALECTS if provider is not client]
    rows = [[name, form.format(value), f"{'≥' if more else '≤'} {limit:g}", "yes" if (value >= limit if more else value <= limit) else "**no**"]
            for name, value, limit, form, more in wanted if value is not None]
    table("Goals", "koboshi's figures of this run.", ["", "measured", "wanted", "met"], rows)


def unwell(told):
    """What koboshi did wrong, whatever it took: answers that were not there, or not whole."""
    for visit in told["visits"].get("koboshi", []):
        if dig(visit, "throughput", "bad"):
            yield f"{visit['throughput']['bad']} bad answers at 64 connections"
        for path in (("latency", "wait0"), ("latency", "wait60"), ("streams", "paced"), ("streams", "burst")):
            through = dig(visit, *path, "through")
            if through and (through["errors"] or through["requests"] != through["status"].get("200")):
                yield f"{' '.join(path)}: {through['status']} {through['errors']}"
    for visit in told.get("dialects", {}).get("koboshi", []):
        for pair, row in visit.items():
            if pair == "repeat":
                continue
            if dig(row, "throughput", "bad"):
                yield f"{pair}: {row['throughput']['bad']} bad answers at 64 connections"
            for path in (("latency", "wait0"), ("streams", "paced"), ("streams", "burst")):
                through = dig(row, *path, "through")
                streams_broken = path[0] == "streams" and through and through["done"] != through["requests"]
                if through and (through["errors"] or through["requests"] != through["status"].get("200") or streams_broken):
                    yield f"{pair}, {' '.join(path)}: {through['status']} {through['errors']}, {through['done']} whole of {through['requests']}"
    for tried in told["open"]:
        if tried.get("begun") != tried["asked"] or tried.get("open_later") != tried["asked"]:
            yield f"of {tried['asked']} streams {tried.get('begun')} began and {tried.get('open_later')} stayed"
    for way, result in told["failover"].get("koboshi", {}).items():
        if not all(row["whole"] for row in result["rows"]):
            yield f"{way}: not every answer was whole"
    if not all(row["whole"] for row in dig(told, "outage", "koboshi", "rows") or []):
        yield "outage: not every answer was whole"


def tables(told):
    about = told["about"]
    versions = "".join(f", {name} {version}" for name, version in about["versions"].items())
    print(f"## Gateways beside each other\n\n{about['cores']} cores, {about['repeats']} repeats{versions}.")
    for name, why in about["missing"].items():
        print(f"\nNot measured: {name}: {why}")
    results = told["visits"]
    throughput(results)
    latency(results)
    streams(results)
    memory(results)
    open_streams(told.get("open", []))
    dialects(told.get("dialects", {}))
    failover(told.get("failover", {}))
    outage(told.get("outage", {}))
    goals(told)
