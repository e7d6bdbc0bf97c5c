#!/usr/bin/env bash
# Conversions by our hdiutil and by other tools in turns, as lines of Go benchmarks, which benchstat compares.
# `make bench-formats` runs it; docs/benchmarks.md explains how to read the figures. Works with bash 3.2.
#
#   scripts/bench-formats.sh [--dir FOLDER] [--pairs N] [--size MIB] [--encode MIB] [--image FILE] [--hdiutil PROGRAM]
#
# Each round has the turns of all tools there and back, A-B-B-A, so that a drift of the machine is the same for all,
# and starts with another tool. The first round is discarded. In the first round all output is checked, byte for byte.
set -euo pipefail
export LC_ALL=C
dir=/tmp pairs=9 size=1024 encode=128 image='' hdiutil=''
[ -d /dev/shm ] && dir=/dev/shm # a file system without a disk
while [ $# -gt 0 ]; do
	case "$#-$1" in
	1-*) set -- --help help ;;
	*---dir | *---pairs | *---size | *---encode | *---image | *---hdiutil) printf -v "${1#--}" %s "$2" && shift 2 ;;
	*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
	esac
done
# Of six values the extremes enclose the median with 96.9 %, and a seventh leaves room for a bad one.
[ "$pairs" -ge 7 ] || { echo "bench-formats: --pairs $pairs: want at least 7" >&2; exit 2; }
[ "$encode" -ge 1 ] && [ "$size" -ge "$encode" ] || { echo "bench-formats: --encode $encode of --size $size" >&2; exit 2; }

dir=$(mktemp -d "$dir/bench-formats-XXXXXX")
trap 'rm -rf "$dir"' EXIT
if [ -z "$hdiutil" ]; then
	hdiutil=$dir/hdiutil
	go build -trimpath -o "$hdiutil" dmgbench/cmd/hdiutil
fi
# metered runs a command and writes its largest resident memory in KiB, where GNU time is installed.
metered() { "$@"; }
if /usr/bin/time -f %M true 2>/dev/null; then
	metered() { /usr/bin/time -f %M -o "$dir/peak" "$@"; }
fi
TIMEFORMAT='%3R %3U %3S'

# convert TOOL IN OUT FORMAT converts with the default level and number of threads of the tool.
convert() {
	case $1-$4 in
	hdiutil-*) metered "$hdiutil" convert "$2" -format "$4" -o "$3" ;;
	fstool-UDRW) metered fstool convert "$2" "$3" ;;
	fstool-*) metered fstool convert "$2" "$3" --dmg-format "$4" ;;
	qemu-img-*) metered qemu-img convert -f dmg -O raw "$2" "$3" ;;
	dmg2img-*) metered dmg2img -s "$2" "$3" ;;
	7zz-*) metered 7zz x -tdmg -y -bso0 -bsp0 "-o$dir/out" "$2" && mv "$dir"/out/* "$3" ;;
	esac >"$dir/output" 2>&1 || {
		echo "bench-formats: running $1: $(head -c 500 "$dir/output")" >&2
		return 1
	}
}

# verify TOOL FORMAT compares the output with the raw image. What was encoded is decoded by another tool, if there is one.
verify() {
	local back=$dir/converted.dmg by=hdiutil
	if [ "$2" != UDRW ]; then
		back=$dir/back.dmg
		[ "$1" = hdiutil ] && command -v fstool >/dev/null && by=fstool
		convert "$by" "$dir/converted.dmg" "$back" UDRW
	fi
	cmp "$back" "$dir/raw.img" >&2 || { echo "bench-formats: the output of $1 is wrong" >&2 && return 1; }
	rm -f "$dir/back.dmg"
}

# writeRaw MIB writes the raw image: the beginning of a file, or a tar archive of Go, again and again. The sources and
# programs of one release of Go are the same bytes for everybody, apart from their times.
writeRaw() {
	if [ -n "$image" ]; then
		head -c "$(($1 << 20))" "$image" >"$dir/raw.img"
	else
		(set +o pipefail && while tar -C "$(go env GOROOT)" -cf - . 2>/dev/null; do :; done | head -c "$(($1 << 20))") >"$dir/raw.img"
	fi
	[ "$(wc -c <"$dir/raw.img")" -eq $(($1 << 20)) ] || { echo "bench-formats: the image has less than $1 MiB" >&2 && return 1; }
}

# measure NAME MIB IN FORMAT TOOL... prints the benchmark of a conversion by tools, ours first.
measure() {
	local name=$1 bytes=$(($2 << 20)) in=$3 format=$4 tools=() order round tool i n
	shift 4
	for tool; do
		if [ "$tool" = hdiutil ] || command -v "$tool" >/dev/null; then tools+=("$tool"); else
			echo "$name: not measured: $tool is not installed" >&2
		fi
	done
	n=${#tools[@]}
	: >"$dir/turns"
	for ((round = 0; round <= pairs; round++)); do
		order=()
		for ((i = 0; i < n; i++)); do order+=("${tools[(i + round) % n]}"); done
		for ((i = n - 1; i >= 0; i--)); do order+=("${order[i]}"); done
		for tool in ${order[@]+"${order[@]}"}; do
			echo 0 >"$dir/peak"
			rm -f "$dir/converted.dmg"
			{ time convert "$tool" "$in" "$dir/converted.dmg" "$format"; } 2>"$dir/time" || { cat "$dir/time" >&2 && return 1; }
			[ "$round" -gt 0 ] || verify "$tool" "$format"
			echo "$round $tool $(tail -n 1 "$dir/time") $(tail -n 1 "$dir/peak") $(($(wc -c <"$dir/converted.dmg")))" >>"$dir/turns"
		done
		echo "$name: round $round of $pairs" >&2
	done
	awk -v name="$name" -v bytes="$bytes" -v first="${tools[0]}" '$1 > 0 {
		printf "Benchmark%s/by=%s 1 %.6g s/op %.6g B/s %.6g cpu-s/B", name, $2, $3, bytes / $3, ($4 + $5) / bytes
		if ($6 > 0) printf " %.0f peak-B", $6 * 1024
		printf " %.0f made-B\n", $7
		took[$1, $2] += $3
	} END {
		for (turn in took) {
			split(turn, of, SUBSEP)
			if (of[2] != first) printf "Benchmark%s/by=%s 1 %.6g time-of-%s\n", name, of[2], took[turn] / took[of[1], first], first
		}
	}' "$dir/turns"
}

if [ -r /proc/cpuinfo ]; then processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1); else
	processor=$(sysctl -n machdep.cpu.brand_string)
fi
printf 'machine: %s, %s processors (%s)\nplace: %s\nimage: %s\n\n' "$(uname -srm)" "$(getconf _NPROCESSORS_ONLN)" "$processor" \
	"$(dirname "$dir")" "${image:-the files of $(go env GOVERSION)}"
writeRaw "$size"
convert hdiutil "$dir/raw.img" "$dir/image.dmg" UDZO
measure Decode/format=UDZO "$size" "$dir/image.dmg" UDRW hdiutil fstool qemu-img dmg2img 7zz
rm -f "$dir/image.dmg"
writeRaw "$encode"
for format in UDZO ULFO; do measure "Encode/format=$format" "$encode" "$dir/raw.img" "$format" hdiutil fstool; done
