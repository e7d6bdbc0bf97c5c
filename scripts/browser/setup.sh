#!/usr/bin/env bash
# Installs what drives the browser in the tests of the report: playwright-core, without a browser of its own, as the
# tests use the Chromium of the system, and axe-core, which judges whether everyone can use a page. package-lock.json
# pins their versions with digests. They go to a cache folder, DMGBENCH_BROWSER_CACHE or dmgbench-browser in the user's cache folder, which may be deleted at any time.
# Node.js comes by apt-get, where that may be used and has one that is new enough.
#
# The status is 0 when it is there. It is quiet, runs no script of a package, and does not wait for a registry
# without end.
set -uo pipefail
cd "$(dirname "$0")"
what=browser
. ../setup.bash

cache=${DMGBENCH_BROWSER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dmgbench-browser}
node=20 # what playwright-core asks for

new_enough() { have npm && node -e "process.exit(parseInt(process.versions.node) < $node ? 1 : 0)" 2>/dev/null; }

# A Node.js that somebody installed is not replaced.
node_of_the_system() {
	have node || ! have apt-get || {
		apt update
		dpkg --compare-versions "$(apt-cache policy nodejs | awk '/Candidate:/ { print $2 }')" ge "$node" 2>/dev/null &&
			apt install --no-install-recommends nodejs npm
	}
	new_enough
}

installed() { cmp -s package-lock.json "$cache/installed.json" && [ -f "$cache/node_modules/playwright-core/package.json" ] &&
	[ -f "$cache/node_modules/axe-core/axe.js" ]; }

# installed.json comes last: the tests take the folder for complete when it is the list that they were written for.
install() {
	mkdir -p "$cache" && rm -f "$cache/installed.json" && cp package.json package-lock.json "$cache/" || return
	(cd "$cache" && limit 120 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=2 --fetch-timeout=30000) &&
		cp package-lock.json "$cache/installed.json"
}

new_enough || node_of_the_system || {
	echo "browser: not at hand: Node.js $node or later with npm" >&2
	exit 1
}
installed || install || {
	echo "browser: not at hand: playwright-core and axe-core" >&2
	exit 1
}
