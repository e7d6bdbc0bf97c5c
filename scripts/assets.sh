#!/bin/sh
# Re-creates third_party/echarts byte for byte from the pinned npm package, or
# says which file differs. The registry is whatever the npm client is set to.
#   scripts/assets.sh          rewrite the folder
#   scripts/assets.sh --check  compare only; exit 1 if a file differs
set -eu

package=echarts@6.1.0
# What npm calls the integrity of the package: without it a changed upload would be taken for the real thing.
integrity=sha512-q0yaFPggC9FUdsWH4blavRWFmxdrIodbkoKNAjJudAI6CA9gNPxHtV2RcZNEepZVlk4yvBYkOkbk6HIVpIyHZA==

cd "$(dirname "$0")/.."
folder=third_party/echarts
command -v npm >/dev/null || { echo "assets: npm is missing; install Node.js (https://nodejs.org)" >&2; exit 1; }
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT INT TERM

npm pack --silent --pack-destination "$temporary" "$package" >/dev/null
archive=$temporary/$(echo "$package" | tr @ -).tgz
found=sha512-$(openssl dgst -sha512 -binary "$archive" | openssl base64 -A)
[ "$found" = "$integrity" ] || { echo "assets: $package has integrity $found, want $integrity" >&2; exit 1; }

fresh=$temporary/fresh
mkdir "$fresh"
tar -xzf "$archive" -C "$temporary"
cp "$temporary/package/dist/echarts.min.js" "$temporary/package/NOTICE" "$fresh/"
# One licence file for both parts: ECharts (Apache-2.0) and the d3 code inside it (BSD-3-Clause).
cat "$temporary/package/LICENSE" "$temporary/package/licenses/LICENSE-d3" >"$fresh/LICENSE"
echo "$package" >"$fresh/VERSION"
(cd "$fresh" && openssl dgst -sha256 -r LICENSE NOTICE VERSION echarts.min.js | sed 's/ \*/  /' >SHA256SUMS)

for name in LICENSE NOTICE SHA256SUMS VERSION echarts.min.js; do
	if [ "${1:-}" = --check ]; then
		cmp "$fresh/$name" "$folder/$name"
	else
		cp "$fresh/$name" "$folder/$name"
	fi
done
echo "assets: $folder is $package"
