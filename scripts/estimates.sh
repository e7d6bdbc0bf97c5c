#!/usr/bin/env bash
# How long `dmgbench run` says that each plan will take, and how long it took. Works with bash 3.2.
#
#   scripts/estimates.sh [--engine ENGINE] [--on FOLDER] [--flags "FLAGS OF RUN"] [--bin FOLDER] [PLAN…]
#
# Without PLAN all shipped plans run, each with one round unless the flags have --rounds; --flags "--sets 1 --scale 0.1"
# makes the large ones small. Places that a plan names are measured in the run folder. Each line has the estimate and the
# time of the session in seconds, and the factor between them, marked if it is more than 2. Run it on an idle machine.
set -euo pipefail
export LC_ALL=C.UTF-8
engine=inprocess on=/tmp flags="" bin=bin
while [ $# -gt 0 ]; do
	case "$#-$1" in
	1---*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
	*---engine | *---on | *---flags | *---bin) printf -v "${1#--}" %s "$2" && shift 2 ;;
	*---*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
	*) break ;;
	esac
done
dmgbench=$(cd "$bin" && pwd)/dmgbench
case " $flags " in *" --rounds"*) ;; *) flags="--rounds 1 $flags" ;; esac
dir=$(mktemp -d "$on/estimates-XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
export DMGBENCH_STATE=$dir/state

# seconds turns a time such as "4.2 min" into seconds.
seconds() {
	awk -v text="$1" 'BEGIN {
		split("ns 1e-9 µs 1e-6 ms 1e-3 s 1 min 60 h 3600 days 86400", u, " ")
		for (i = 1; i < 14; i += 2) factor[u[i]] = u[i + 1]
		n = split(text, part, " ")
		for (i = 1; i < n; i += 2) sum += part[i] * factor[part[i + 1]]
		printf "%.1f", sum
	}'
}

[ $# -gt 0 ] || set -- $("$dmgbench" plans | awk '{ print $1 }')
printf '%-26s %10s %10s %8s\n' plan estimate took factor
for plan; do
	run=("$dmgbench" run "$plan" --yes --engine "$engine" --out "$dir/$plan")
	places=$("$dmgbench" run "$plan" --dry-run 2>&1 | grep -o -m 1 -- '--on [A-Za-z0-9._+-]*=here.*here' || true)
	# shellcheck disable=SC2086 # the flags are words
	"${run[@]}" $flags $places >"$dir/out" 2>"$dir/log" </dev/null || true
	said=$(sed -n "s/^$plan: .* about \(.*\) at \(an assumed\|the\) .*/\1/p" "$dir/log" | head -n 1)
	if [ -z "$said" ] || [ ! -f "$dir/$plan/result.json" ]; then
		printf '%-26s not run: %s\n' "$plan" "$(grep -v '^ *$' "$dir/log" | tail -n 1 | cut -c 1-90)"
		continue
	fi
	took=$(awk '/measured|done/ { line = $0 } END { print line }' "$dir/log" | sed -n 's/.* in \([0-9hms.]*\)$/\1/p')
	took=$(echo "$took" | sed 's/h/ h /; s/m\([0-9]\)/ min \1/; s/m$/ min/; s/\([0-9]\)s/\1 s/; s/\([0-9]\)ms/\1 ms/')
	said=$(seconds "$said") took=$(seconds "$took")
	awk -v p="$plan" -v e="$said" -v t="$took" 'BEGIN {
		f = t > 0 ? e / t : 0
		printf "%-26s %8.1f s %8.1f s %8.2f%s\n", p, e, t, f, (f < 0.5 || f > 2) ? "  more than 2" : ""
	}'
	rm -rf "${dir:?}/$plan"
done
