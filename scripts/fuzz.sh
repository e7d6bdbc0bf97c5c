#!/usr/bin/env bash
# Runs the fuzz targets of the module and adds up their CPU time.
#
#   scripts/fuzz.sh 10s                     each target for so long (make fuzz)
#   scripts/fuzz.sh 2m 7200 [TARGET…]       turns of 2 minutes for 7200 seconds, the target with the least CPU time first,
#                                           added to the table of docs/fuzzing.md (make fuzz-hours); TARGET is a folder, with
#                                           those below it, or folder/FuzzName
#
# CPU time is that of the fuzzing process and its workers, without the build. The corpus in Go's cache is used and grown, so each
# turn continues where the last one ended. A target that fails gets no further turn; exit status 1.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:?usage: scripts/fuzz.sh TIME [SECONDS [TARGET...]]} total=${2:-0}
shift $(($# < 2 ? $# : 2))
page=docs/fuzzing.md aim=3600 workers=$((total > 0 ? 2 : 1)) failed="" turns=0
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
corpus=$(go env GOCACHE)/fuzz/$(go list -m)
tick='`'

# list_targets prints "folder FuzzName" of every target that the arguments select.
list_targets() {
	grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' internal cmd tools |
		sed -E 's|^(.*)/[^/]*:func (.*)\($|\1 \2|' | sort |
		while read -r folder name; do
			[ $# -gt 0 ] || echo "$folder $name"
			for path in "$@"; do
				case "$folder/$name/" in "${path%/}"/*) echo "$folder $name" ;; esac
			done
		done
}

# read_row prints the CPU seconds and executions of a target so far.
read_row() {
	awk -F '|' -v folder=" $tick$1$tick " -v name=" $tick$2$tick " \
		'$2 == folder && $3 == name { cpu = $4; n = $5 } END { print cpu + 0, n + 0 }' "$page"
}

# add_row adds a turn to the table: changes the target's row, or appends one after the last.
add_row() {
	read -r cpu n <<<"$(read_row "$1" "$2")"
	local row="| $tick$1$tick | $tick$2$tick | $((cpu + $3)) | $((n + $4)) |"
	awk -F '|' -v folder=" $tick$1$tick " -v name=" $tick$2$tick " -v row="$row" '
		{ line[NR] = $0; if (/^\|/) last = NR; if ($2 == folder && $3 == name) at = NR }
		END { for (i = 1; i <= NR; i++) { print i == at ? row : line[i]; if (!at && i == last) print row } }' "$page" >"$page.new"
	mv "$page.new" "$page"
}

# fuzz gives a target one turn. Before Go 1.27 a turn that ends amid an input fails with "context deadline exceeded"
# (golang/go#75804), which is no finding: those name the file of their input.
fuzz() {
	local program="$programs/${1//\//_}" log="$programs/log" status=0 cpu n
	[ -x "$program" ] || go test -c -o "$program" -fuzz=. "./$1"
	echo "fuzz: $1 $2"
	(cd "$1" && { "$program" -test.run='^$' -test.fuzz="^$2\$" -test.fuzztime="$each" -test.fuzzminimizetime=10x \
		-test.parallel="$workers" -test.fuzzcachedir="$corpus/$1" >"$log" 2>&1 || status=$?; }
	times >"$log.time"
	exit $status) || status=$?
	turns=$((turns + 1))
	if [ $status != 0 ] && { grep -q 'Failing input' "$log" || ! grep -q '^ *context deadline exceeded$' "$log"; }; then
		cat "$log" >&2
		return 1
	fi
	[ "$total" -gt 0 ] || return 0
	cpu=$(awk -F '[ms ]+' 'NR == 2 { print int(60 * ($1 + $3) + $2 + $4) }' "$log.time") # of the children: 0m1.230s 0m0.040s
	n=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$log" | tail -n 1)
	add_row "$1" "$2" "$cpu" "${n:-0}"
}

# next_target prints the target with the least CPU time below the aim that has not failed.
next_target() {
	echo "$targets" | while read -r folder name; do
		case "$failed" in *" $folder/$name "*) continue ;; esac
		read -r cpu _ <<<"$(read_row "$folder" "$name")"
		[ "$cpu" -ge "$aim" ] || echo "$cpu $folder $name"
	done | sort -n | sed -n '1s/^[0-9]* //p'
}

targets=$(list_targets "$@")
[ -n "$targets" ] || { echo "fuzz: no target selected by: $*" >&2; exit 1; }
if [ "$total" = 0 ]; then
	while read -r folder name; do
		fuzz "$folder" "$name" || failed="$failed $folder/$name "
	done <<<"$targets"
else
	while [ "$SECONDS" -lt "$total" ] && read -r folder name <<<"$(next_target)" && [ -n "$name" ]; do
		fuzz "$folder" "$name" || failed="$failed $folder/$name "
	done
fi
[ -z "$failed" ] || { echo "fuzz: failed:$failed" >&2; exit 1; }
echo "fuzz: $turns turns, no failure"
