#!/usr/bin/env bash
# The same plan by `dmgbench run` alone and as a job of a machine that joined a fleet, in turns, as lines of Go benchmarks,
# which benchstat compares. `make bench-fleet` runs it; docs/fleet.md has the figures. Works with bash 3.2.
#
#   scripts/bench-fleet.sh [--dir FOLDER] [--pairs N] [--files N] [--rounds N] [--engine ENGINE] [--bin FOLDER]
#
# The server runs here, too, so that all traffic of the fleet would show in the figures. Each pair has the turns of both
# there and back, A-B-B-A, so that a drift of the machine is the same for both, and starts with the other one. The first
# pair is discarded.
set -euo pipefail
export LC_ALL=C
dir=/tmp pairs=15 files=40 rounds=5 engine=inprocess bin=bin
while [ $# -gt 0 ]; do
	case "$#-$1" in
	1-*) set -- --help help ;;
	*---dir | *---pairs | *---files | *---rounds | *---engine | *---bin) printf -v "${1#--}" %s "$2" && shift 2 ;;
	*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
	esac
done
# Of six values the extremes enclose the median with 96.9 %, and a seventh leaves room for a bad one.
[ "$pairs" -ge 7 ] || { echo "bench-fleet: --pairs $pairs: want at least 7" >&2; exit 2; }
bin=$(cd "$bin" && pwd)
PATH=$bin:$PATH
place=$dir
dir=$(mktemp -d "$dir/bench-fleet-XXXXXX")
pids=()
clean() {
	status=$?
	trap - EXIT INT TERM
	for pid in ${pids[@]+"${pids[@]}"}; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
	done
	[ "$status" = 0 ] || tail -n 20 "$dir"/*.log >&2
	rm -rf "$dir"
	exit "$status"
}
trap clean EXIT
trap 'exit 130' INT TERM
export DMGBENCH_STATE=$dir/state

cat >"$dir/bench-fleet.toml" <<END
schema = 1
title  = "Bare and joined"
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

dmgbench-fleet serve >"$dir/serve.log" 2>&1 &
pids=($!)
until grep -q '^serving' "$dir/serve.log"; do
	kill -0 "${pids[0]}"
	sleep 0.1
done
mkdir "$dir/place"
dmgbench-fleet add-machine machine --to "$dir/join" 2>"$dir/add.log"
dmgbench-fleet join "$dir/join" --on "$dir/place" >"$dir/join.log" 2>&1 &
pids=($! ${pids[@]+"${pids[@]}"})
until dmgbench-fleet status | grep -q '^machine  *idle '; do sleep 0.2; done

# rates RUN prints the rates of a run in bytes per second.
rates() {
	dmgbench export "$1" --table summaries | awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["estimate"] == "mean" && ($at["op"] == "write" || $at["op"] == "read") { print $at["op"], $at["value"] }'
}

turnOfBare() {
	dmgbench run "$dir/bench-fleet.toml" --engine "$engine" --seed "$1" --on "$dir/place" --out "$dir/run" --yes \
		>"$dir/bare.log" 2>&1
	rates "$dir/run"
	rm -rf "$dir/run"
}

turnOfJoined() {
	local job
	job=$(dmgbench-fleet submit "$dir/bench-fleet.toml" --engine "$engine" --seed "$1")
	dmgbench-fleet results "${job##* }" --to "$dir/runs" --wait >"$dir/results.log"
	rates "$dir"/runs/*
	rm -rf "$dir/runs"
}

if [ -r /proc/cpuinfo ]; then processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1); else
	processor=$(sysctl -n machdep.cpu.brand_string)
fi
printf 'machine: %s, %s processors (%s)\nplace: %s\njob: %s files of 2 MB in a UDSB image, %s rounds, engine %s\n\n' \
	"$(uname -srm)" "$(getconf _NPROCESSORS_ONLN)" "$processor" "$place" "$files" "$rounds" "$engine"
printf 'Unit B/s better=higher\nUnit write-of-bare better=higher\nUnit read-of-bare better=higher\n'
for ((pair = 0; pair <= pairs; pair++)); do
	order='Bare Joined Joined Bare'
	[ $((pair % 2)) = 0 ] || order='Joined Bare Bare Joined'
	for by in $order; do
		"turnOf$by" $((pair + 1)) | sed "s/^/$pair $by /" >>"$dir/turns"
	done
	echo "pair $pair of $pairs" >&2
done
awk '
	$1 > 0 {
		by = tolower($2)
		printf "BenchmarkRun/op=%s/by=%s 1 %.6g B/s\n", $3, by, $4
		sum[$1, $3, by] += $4
		of[$1 SUBSEP $3]
	}
	END {
		for (key in of) {
			split(key, part, SUBSEP)
			printf "BenchmarkRun/by=joined 1 %.6g %s-of-bare\n", sum[key, "joined"] / sum[key, "bare"], part[2]
		}
	}' "$dir/turns"
