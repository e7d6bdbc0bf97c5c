#!/bin/sh
# Runs every fuzz target of the module for a while each, one after the other.
#   scripts/fuzz.sh 10s
set -eu
go=${GO:-go}
cd "$(dirname "$0")/.."

found=0
for file in $(grep -rlE --include='*_test.go' '^func Fuzz' . | sort); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		found=$((found + 1))
		echo "fuzz: $(dirname "$file") $target"
		# Minimising what is only new coverage would use the time up.
		"$go" test -fuzzminimizetime 10x -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10s}" "$(dirname "$file")"
	done
done
[ "$found" -gt 0 ] || { echo "fuzz: no fuzz target found" >&2; exit 1; }
echo "fuzz: $found targets, nothing found"
