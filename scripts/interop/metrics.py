"""Reads metrics from stdin with prometheus-client (PyPI) and prints what it understood, as JSON: a list of families
of name, type, unit, help and samples, each of these name, labels and value. What the parser refuses is its last line
on stderr, and the status 1.

Usage: metrics.py openmetrics|text <METRICS
"""
import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

parse = {"openmetrics": openmetrics, "text": parser}[sys.argv[1]].text_string_to_metric_families
families = [
    {
        "name": f.name,
        "type": f.type,
        "unit": f.unit,
        "help": f.documentation,
        "samples": [{"name": s.name, "labels": s.labels, "value": s.value, "stamped": s.timestamp is not None} for s in f.samples],
    }
    for f in parse(sys.stdin.buffer.read().decode())
]
json.dump(families, sys.stdout)
