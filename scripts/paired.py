"""Compares the reports that paired.sh wrote: paired.py DIRECTORY SUITE..."""

import glob
import json
import math
import statistics
import sys

TIMES = ("median_ms", "first_ms", "hot_ms", "open_first_ms")


def named(row, key):
    """The value of a key in a row or in one of its parts."""
    for value in (row, *(v for v in row.values() if isinstance(v, dict))):
        if key in value:
            return str(value[key])
    return ""


def rows(file):
    """The times of a report in ms, by row."""
    found = {}
    with open(file) as f:
        report = json.load(f)
    for row in report["rows"]:
        name = " ".join(filter(None, (named(row, k) for k in ("device", "cache", "variant", "how", "mode"))))
        for time in TIMES:
            if row.get(time):
                found[f"{name} {time.removesuffix('_ms')}"] = row[time]
    return found


def interval(ratios):
    """The 95 % interval of the median, by ranks; of fewer than six ratios there is none."""
    n = len(ratios)
    if n < 6:
        return 0, math.inf
    low = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    return ratios[low], ratios[n - 1 - low]


def main(directory, suites):
    print(f"{'':50} {'old ms':>10} {'new ms':>10} {'new/old':>8}  95 % interval")
    geometric = []
    for suite in suites:
        old, new = {}, {}
        for file in glob.glob(f"{directory}/{suite}.old.*.json"):
            for which, times in (("old", old), ("new", new)):
                for name, ms in rows(file.replace(".old.", f".{which}.")).items():
                    times.setdefault(name, []).append(ms)
        for name in old.keys() & new.keys():
            ratios = sorted(b / a for a, b in zip(old[name], new[name]))
            ratio, (low, high) = statistics.median(ratios), interval(ratios)
            geometric.append(math.log(ratio))
            mark = " slower" if low > 1.02 else " faster" if high < 0.98 else ""
            print(f"{suite + ' ' + name:50} {statistics.median(old[name]):10.4g} {statistics.median(new[name]):10.4g} {ratio:8.3f}  {low:.3f} to {high:.3f}{mark}")
    print(f"geometric mean of {len(geometric)} ratios: {math.exp(statistics.mean(geometric)):.3f}")


main(sys.argv[1], sys.argv[2:])
