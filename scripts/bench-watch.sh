#!/usr/bin/env bash
# The same plan by `dmgbench run` alone and while `dmgbench watch` follows it on a terminal, in turns, as lines of Go
# benchmarks, which benchstat compares. `make bench-watch` runs it; docs/benchmarks.md has the figures. Works with
# bash 3.2.
#
#   scripts/bench-watch.sh [--dir FOLDER] [--pairs N] [--files N] [--rounds N] [--engine ENGINE] [--bin FOLDER]
#
# The terminal of the watcher is one of script(1). Each pair has the turns of both there and back, A-B-B-A, so that a
# drift of the machine is the same for both, and starts with the other one. The first pair is discarded. The runs of the
# others are also compared by `dmgbench compare`, whose answer goes to stderr.
set -euo pipefail
export LC_ALL=C.UTF-8
dir=/tmp pairs=15 files=40 rounds=10 engine=inprocess bin=bin
while [ $# -gt 0 ]; do
	case "$#-$1" in
	1-*) set -- --help help ;;
	*---dir | *---pairs | *---files | *---rounds | *---engine | *---bin) printf -v "${1#--}" %s "$2" && shift 2 ;;
	*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
	esac
done
# Of six values the extremes enclose the median with 96.9 %, and a seventh leaves room for a bad one.
[ "$pairs" -ge 7 ] || { echo "bench-watch: --pairs $pairs: want at least 7" >&2; exit 2; }
command -v script >/dev/null || { echo "bench-watch: script(1) is not installed" >&2; exit 2; }
bin=$(cd "$bin" && pwd)
PATH=$bin:$PATH
place=$dir
dir=$(mktemp -d "$dir/bench-watch-XXXXXX")
watcher=""
# stop_watcher presses q, which script(1) passes on, and waits until the terminal is closed.
stop_watcher() {
	[ -n "$watcher" ] || return 0
	echo q >&9 2>/dev/null || true
	exec 9>&-
	wait "$watcher" || true
	watcher=""
}
clean() {
	status=$?
	trap - EXIT INT TERM
	stop_watcher
	[ "$status" = 0 ] || tail -n 20 "$dir"/*.log >&2
	rm -rf "$dir"
	exit "$status"
}
trap clean EXIT
trap 'exit 130' INT TERM
export DMGBENCH_STATE=$dir/state

cat >"$dir/bench-watch.toml" <<END
schema = 1
title  = "Alone and watched"
[image]
size   = "512 MB"
format = "UDSB"
filesystem_preference = ["exFAT"]
[files.small]
sizes = ["2 MB"]
sets  = $files
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "small" },
  { do = "remount" },
  { do = "read", phase = "new" },
]
[run]
rounds   = $rounds
baseline = false
canary   = false
END
mkdir "$dir/place" "$dir/alone" "$dir/watched"
mkfifo "$dir/keys"

# rates RUN prints the rates of a run in bytes per second.
rates() {
	dmgbench export "$1" --table summaries | awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["estimate"] == "mean" && ($at["op"] == "write" || $at["op"] == "read") { print $at["op"], $at["value"] }'
}

# watch_run RUN follows a run in the background, as soon as its journal has a record.
watch_run() {
	local command="until [ -s '$1/journal.jsonl' ]; do sleep 0.05; done; stty rows 24 cols 80; exec dmgbench watch '$1'"
	if [ "$(uname)" = Darwin ]; then
		script -q "$dir/screen.log" sh -c "$command" <"$dir/keys" >/dev/null 2>&1 &
	else
		script -qec "$command" "$dir/screen.log" <"$dir/keys" >/dev/null 2>&1 &
	fi
	watcher=$!
	exec 9>"$dir/keys"
}

# take_turn BY PAIR HALF executes the plan once.
take_turn() {
	local out=$dir/$1/$2-$3
	[ "$1" = alone ] || TERM=xterm-256color watch_run "$out"
	dmgbench run "$dir/bench-watch.toml" --engine "$engine" --seed "$2" --on "$dir/place" --out "$out" --yes \
		>"$dir/run.log" 2>&1
	stop_watcher
	if [ "$1" = watched ] && ! grep -q 'case-rounds' "$dir/screen.log"; then
		echo "bench-watch: the watcher showed no screen" >&2
		exit 1
	fi
	rates "$out" | sed "s/^/$2 $1 /" >>"$dir/turns"
}

if [ -r /proc/cpuinfo ]; then processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1); else
	processor=$(sysctl -n machdep.cpu.brand_string)
fi
printf 'machine: %s, %s processors (%s)\nplace: %s\nrun: %s files of 2 MB in a UDSB image, %s rounds, engine %s\n\n' \
	"$(uname -srm)" "$(getconf _NPROCESSORS_ONLN)" "$processor" "$place" "$files" "$rounds" "$engine"
printf 'Unit B/s better=higher\nUnit write-of-alone better=higher\nUnit read-of-alone better=higher\n'
for ((pair = 0; pair <= pairs; pair++)); do
	order='alone watched watched alone'
	[ $((pair % 2)) = 0 ] || order='watched alone alone watched'
	half=0
	for by in $order; do
		half=$((half + 1))
		take_turn "$by" "$pair" "$half"
	done
	echo "pair $pair of $pairs" >&2
done
rm -rf "$dir"/alone/0-* "$dir"/watched/0-*
dmgbench compare "$dir/alone" "$dir/watched" --op all >&2 || [ $? -ge 5 ]
awk '
	$1 > 0 {
		printf "BenchmarkRun/op=%s/by=%s 1 %.6g B/s\n", $3, $2, $4
		sum[$1, $3, $2] += $4
		of[$1 SUBSEP $3]
	}
	END {
		for (key in of) {
			split(key, part, SUBSEP)
			printf "BenchmarkRun/by=watched 1 %.6g %s-of-alone\n", sum[key, "watched"] / sum[key, "alone"], part[2]
		}
	}' "$dir/turns"
