#!/usr/bin/env bash
# Writes the licences of everything that the released programs contain, on any of their platforms, to the file of the
# first argument: Go itself, every linked module, and what is embedded. A module without a licence is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/licences.sh FILE}
go=${GO:-go}

# linked prints module, version and folder of each linked module.
linked() {
	local os arch
	for os in darwin linux; do
		for arch in amd64 arm64; do
			GOOS=$os GOARCH=$arch "$go" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' \
				./cmd/dmgbench ./cmd/dmgbench-fleet
		done
	done | LC_ALL=C sort -u
}

# print_licences prints the licence files of a folder below a title.
print_licences() {
	local file found=""
	for file in "$2"/LICEN[CS]E* "$2"/COPYING* "$2"/NOTICE*; do
		[ -f "$file" ] || continue
		printf '%s\n%s, %s\n\n' "$(printf '=%.0s' {1..80})" "$1" "${file##*/}"
		cat "$file"
		echo
		found=yes
	done
	[ -n "$found" ] || { echo "collecting licences: $1 has none in $2" >&2; return 1; }
}

modules=$(linked)
{
	print_licences "Go $("$go" env GOVERSION)" "$("$go" env GOROOT)"
	while read -r path version dir; do
		print_licences "$path $version" "$dir"
	done <<<"$modules"
	print_licences "Apache ECharts $(cat third_party/echarts/VERSION)" third_party/echarts
} >"$out.part"
mv "$out.part" "$out"
