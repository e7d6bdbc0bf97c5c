#!/usr/bin/env bash
# Makes the pictures of docs (`make pictures`) from runs on this machine, which has to be idle: two minutes. Needs bin/
# of `make build`, Chromium (CHROMIUM names another program) with a font for emoji, and pngquant. The engine is
# in-process everywhere, since it needs no privileges. The pages of history.png and hostile.png come from a test: the
# first has more versions of macOS than a machine has, the second markup in every name.
#
#   scripts/pictures.sh [DIR]        into DIR instead of docs
set -euo pipefail
cd "$(dirname "$0")/.."
browser=${CHROMIUM:-chromium}
for tool in "$browser" pngquant; do
	command -v "$tool" >/dev/null || { echo "pictures: $tool is not installed" >&2; exit 2; }
done
mkdir -p "${1:-docs}" && docs=$(cd "${1:-docs}" && pwd) bin=$PWD/bin work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DMGBENCH_RUN_ENGINE=inprocess DMGBENCH_STATE=$work/state DMGBENCH_CONFIG=/dev/null

# shoot photographs the top of a page, WIDTH,HEIGHT pixels of it. A palette takes a third of the bytes.
shoot() {
	local flags=(--headless --disable-gpu --hide-scrollbars --virtual-time-budget=5000)
	[ "$(id -u)" != 0 ] || flags+=(--no-sandbox) # Chromium has none for root
	"$browser" "${flags[@]}" --window-size="$3" --screenshot="$work/$1" "file://$2" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		return 1
	}
	pngquant --force --strip --quality 85-100 --output "$docs/$1" "$work/$1"
}

# Encryption is an axis here, so that its values are the sides of a comparison.
cat >"$work/encryption.toml" <<-'TOML'
	schema  = 1
	title   = "Encryption"
	summary = "A RAW image and a sparse bundle, unencrypted and encrypted."
	[image]
	size       = "128 MB"
	filesystem = "exFAT"
	[matrix]
	format     = ["UDRW", "UDSB"]
	encryption = ["none", "AES-256"]
	[files.few]
	sizes = ["4 MB", "8 MB"]
	sets  = 4
	[io]
	files = "few"
	[[protocol]]
	steps = [
	  { do = "create" },
	  { do = "attach" },
	  { do = "write", phase = "new" },
	  { do = "remount" },
	  { do = "read", phase = "new" },
	  { do = "detach" },
	]
	[run]
	rounds = 3
TOML

DMGBENCH_PICTURES=$work "${GO:-go}" test -count=1 -run TestPictures ./internal/report >/dev/null
cd "$work"
# run executes a plan into a folder, and is silent unless that fails.
run() { "$bin/dmgbench" run "$@" >run.log 2>&1 || { cat run.log >&2; return 1; }; }
run which-image --out which-image
run quick --out quick
run encryption.toml --sessions 4 --pause "0 s" --out encryption
"$bin/dmgbench" compare encryption --by encryption --format html >comparison.html || [ $? = 5 ] # encrypted is slower
shoot which-image.png "$work/which-image/report.html" 1280,1000
shoot report.png "$work/quick/report.html" 1280,900
shoot comparison.png "$work/comparison.html" 1100,1300
shoot history.png "$work/history.html" 1100,1300
shoot hostile.png "$work/hostile.html" 1200,1000
