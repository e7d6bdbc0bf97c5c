#!/usr/bin/env bash
# Builds the release of the last commit twice and compares all archives, packages and the cask. The two builds differ in
# folder, time zone, umask and cache: the second one compiles everything anew. Signatures and SBOMs are left out, since
# both contain times. Takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v goreleaser >/dev/null || {
	echo "reproducible: goreleaser is not installed: docs/releasing.md has the version" >&2
	exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset GOFLAGS
commit=$(git rev-parse HEAD) # the branch may move while the first build runs

# build clones this repository into a folder and prints the checksums of its release.
build() {
	local dir=$work/$1
	git clone -q . "$dir" && git -C "$dir" checkout -q --detach "$commit"
	(cd "$dir" && goreleaser release --snapshot --clean --skip=sign,sbom >"$dir.log" 2>&1) || {
		tail -n 20 "$dir.log" >&2
		return 1
	}
	(cd "$dir/dist/release" && sha256 ./*.tar.gz ./*.deb ./*.rpm homebrew/Casks/*.rb)
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

(umask 022 && TZ=UTC build a) >"$work/first"
(umask 077 && TZ=Asia/Tokyo GOCACHE=$work/cache build a-longer-name/b) >"$work/second"
diff "$work/first" "$work/second" >&2 || {
	echo "reproducible: two builds of the same commit differ" >&2
	exit 1
}
cat "$work/first"
