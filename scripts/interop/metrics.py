"""Reads metrics with prometheus-client (PyPI) and prints what it understood. Stdin is a JSON list of pairs of a parser
(openmetrics or text) and the metrics. Stdout is a JSON list of as many objects: families (name, type, unit, help and
samples, each of these name, labels and value), or refused, the reason why the parser refuses them.

Usage: metrics.py <PAIRS
"""
import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics


def understand(name, text):
    parse = {"openmetrics": openmetrics, "text": parser}[name].text_string_to_metric_families
    try:
        found = list(parse(text))
    except ValueError as e:
        return {"refused": str(e)}
    return {
        "families": [
            {
                "name": f.name,
                "type": f.type,
                "unit": f.unit,
                "help": f.documentation,
                "samples": [
                    {"name": s.name, "labels": s.labels, "value": s.value, "stamped": s.timestamp is not None}
                    for s in f.samples
                ],
            }
            for f in found
        ]
    }


json.dump([understand(*pair) for pair in json.loads(sys.stdin.buffer.read())], sys.stdout)
