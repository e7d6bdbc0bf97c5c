#!/usr/bin/env bash
# Random I/O in one file by the native folder of `dmgbench run` and by fio in turns, as lines of Go benchmarks, which
# benchstat compares. `make bench-random` runs it; docs/benchmarks.md explains how to read the figures. Works with bash 3.2.
#
#   scripts/bench-random.sh [--dir FOLDER] [--pairs N] [--seconds N] [--size MIB] [--block KIB] [--jobs LIST] [--buffered 1]
#                           [--dmgbench PROGRAM] [--fio PROGRAM]
#
# A job is READS:WORKERS:FLUSH, the percentage of reads, the number of threads, and after how many writes each of them
# flushes (0 is never). Each round has the turns of both there and back, A-B-B-A, so that a drift of the machine is the
# same for both, and starts with the other one. The first round is discarded.
set -euo pipefail
export LC_ALL=C
dir=/tmp pairs=9 seconds=2 size=256 block=4 jobs='100:1:0 70:1:32 70:2:32' buffered=0 dmgbench='' fio=fio
while [ $# -gt 0 ]; do
	case "$#-$1" in
	1-*) set -- --help help ;;
	*---dir | *---pairs | *---seconds | *---size | *---block | *---jobs | *---buffered | *---dmgbench | *---fio)
		printf -v "${1#--}" %s "$2" && shift 2 ;;
	*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
	esac
done
# Of six values the extremes enclose the median with 96.9 %, and a seventh leaves room for a bad one.
[ "$pairs" -ge 7 ] || { echo "bench-random: --pairs $pairs: want at least 7" >&2; exit 2; }
command -v "$fio" >/dev/null || { echo "bench-random: fio is not installed (apt-get install fio, brew install fio)" >&2; exit 1; }
filesystem=$(df -T "$dir" 2>/dev/null | awk 'END { print $2 }') || filesystem=unknown
[ "$filesystem" != tmpfs ] || buffered=1 # it has no direct I/O, but accepts fio's request

dir=$(mktemp -d "$dir/bench-random-XXXXXX")
trap 'rm -rf "$dir"' EXIT
if [ -z "$dmgbench" ]; then
	dmgbench=$dir/dmgbench
	go build -trimpath -o "$dmgbench" dmgbench/cmd/dmgbench
fi
export DMGBENCH_STATE=$dir/state
cache=direct
[ "$buffered" = 0 ] || cache=buffered

# writePlan READS WORKERS FLUSH TURN writes the job as a plan: one case, one round, one step.
writePlan() {
	local flush=''
	[ "$3" = 0 ] || flush=", flush = $3"
	cat >"$dir/job.toml" <<-END
		schema = 1
		title  = "Random I/O"
		[target]
		kind = "directory"
		[io]
		sync    = "fsync"
		cache   = "$cache"
		block   = "$block KiB"
		workers = $2
		[files.none]
		sizes = ["1 MB"]
		[[protocol]]
		steps = [{ do = "create" }, { do = "attach" }, { do = "random", phase = "job", file = "file", file_size = "$size MiB", reads = "$1%", time = "$seconds s"$flush }]
		[run]
		rounds = 1
		canary = false
		seed   = $4
	END
}

# The figures of a turn are lines "rate", "read-p99" and "write-p99" with a number: reads and writes a second, and
# seconds.
turnOfDmgbench() {
	writePlan "$@"
	"$dmgbench" run "$dir/job.toml" --out "$dir/run" >"$dir/output" 2>&1 || { cat "$dir/output" >&2 && return 1; }
	"$dmgbench" export "$dir/run" --table summaries | awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["estimate"] != "mean" { next }
		{ kind = $at["phase"]; gsub(/job|[ ()]/, "", kind) }
		kind != "read" && kind != "write" { next }
		$at["op"] == "random" { rate += $at["value"] }
		$at["op"] == "random_p99" { print kind "-p99", $at["value"] }
		END { print "rate", rate }'
	rm -rf "$dir/run"
}

# The file of each turn is new: the first reads of new pages in the cache cost the kernel more than later ones.
turnOfFio() {
	rm -f "$dir/fio"
	"$fio" --name=job --ioengine=psync --thread --numjobs="$2" --group_reporting --filename="${dir//:/\\:}/fio" \
		--size="${size}M" --bs="${block}k" --rw=randrw --rwmixread="$1" --fsync="$3" --direct=$((1 - buffered)) \
		--time_based --runtime="$seconds" --norandommap --randseed="$4" --fallocate=none --iomem_align=4096 \
		--refill_buffers=0 --scramble_buffers=0 --clocksource=clock_gettime --percentile_list=99 \
		--output-format=json >"$dir/output" 2>&1 || { cat "$dir/output" >&2 && return 1; }
	# One key a line.
	awk '
		/^ *"(read|write|trim|sync)" : {/ { kind = $1; gsub(/"/, "", kind) }
		/"iops" :/ { rate += $3 }
		/"99.000000" :/ && (kind == "read" || kind == "write") && $3 > 0 { printf "%s-p99 %.9f\n", kind, $3 / 1e9 }
		END { print "rate", rate }' "$dir/output"
}

# measure READS WORKERS FLUSH prints the turns of a job, and for each round the ratios of dmgbench to fio.
measure() {
	local name="Random/reads=$1/workers=$2/flush=$3" round by order
	: >"$dir/turns"
	for ((round = 0; round <= pairs; round++)); do
		order='Dmgbench Fio Fio Dmgbench'
		[ $((round % 2)) = 0 ] || order='Fio Dmgbench Dmgbench Fio'
		for by in $order; do
			"turnOf$by" "$1" "$2" "$3" "$round" | sed "s/^/$round $by /" >>"$dir/turns"
			sleep 0.3 # file systems that are mounted with discard hand deletions on
		done
		echo "$name: round $round of $pairs" >&2
	done
	awk -v name="$name" '
		$1 > 0 {
			by = tolower($2)
			printf "Benchmark%s/by=%s 1 %.6g %s\n", name, by, $4, $3 == "rate" ? "ops/s" : $3 "-s"
			sum[$1, $3, by] += $4
			of[$1 SUBSEP $3]
		}
		END {
			for (key in of) {
				split(key, part, SUBSEP)
				if (sum[key, "fio"] > 0) printf "Benchmark%s/by=dmgbench 1 %.6g %s-of-fio\n", name, sum[key, "dmgbench"] / sum[key, "fio"], part[2]
			}
		}' "$dir/turns"
}

if [ -r /proc/cpuinfo ]; then processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1); else
	processor=$(sysctl -n machdep.cpu.brand_string)
fi
printf 'machine: %s, %s processors (%s)\nplace: %s (%s)\nfio: %s\njob: blocks of %s KiB in %s MiB, %s, %s s a turn\n\n' \
	"$(uname -srm)" "$(getconf _NPROCESSORS_ONLN)" "$processor" "$(dirname "$dir")" "$filesystem" "$("$fio" --version)" \
	"$block" "$size" "$cache" "$seconds"
printf 'Unit ops/s better=higher\nUnit rate-of-fio better=higher\n'
for job in $jobs; do
	IFS=: read -r reads workers flush <<<"$job"
	measure "$reads" "$workers" "$flush"
done
