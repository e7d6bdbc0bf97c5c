#!/usr/bin/env bash
# Installs the programs that judge what we write, each once and with a pinned version. Programs of the system
# come by apt-get, where that may be used; the others go to a cache folder, DMGBENCH_INTEROP_CACHE or
# dmgbench-interop in the user's cache folder, which may be deleted at any time.
#
# With --python it installs nothing and prints the path of the Python that has the modules.
#
# The status is 0 when all of them are there. A part that does not succeed leaves the others alone, and none waits
# for a registry without end.
set -uo pipefail
cd "$(dirname "$0")"
what=interop
. ../setup.bash
export PATH="$PATH:/usr/sbin:/sbin:$HOME/.cargo/bin"

cache=${DMGBENCH_INTEROP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dmgbench-interop}
fstool=0.5.2
if [ "${1:-}" = --python ]; then
	echo "${DMGBENCH_INTEROP_PYTHON:-$cache/venv/bin/python3}"
	exit
fi
# program:Debian package
programs=(7zz:7zip qemu-img:qemu-utils fsck.exfat:exfatprogs e2fsck:e2fsprogs)
missing=()

system_programs() {
	local entry updated=""
	for entry in "${programs[@]}"; do
		have "${entry%%:*}" && continue
		if have apt-get; then
			[ -n "$updated" ] || apt update
			updated=1
			apt install --no-install-recommends "${entry#*:}"
		fi
		have "${entry%%:*}" || missing+=("${entry%%:*}, of the package ${entry#*:}")
	done
}

# A list that has changed makes the environment anew.
python_modules() {
	cmp -s requirements.txt "$cache/venv/installed.txt" && return
	if ! python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
		missing+=("the Python modules: they need Python 3.10 with venv (package python3-venv)")
		return
	fi
	rm -rf "$cache/venv"
	limit 60 python3 -m venv "$cache/venv" &&
		limit 300 "$cache/venv/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 30 -r requirements.txt &&
		cp requirements.txt "$cache/venv/installed.txt" || missing+=("the Python modules of scripts/interop/requirements.txt")
}

# Nobody measures it here, so it is built quickly instead of fast: some three minutes of one processor.
rust_programs() {
	[ "$("$cache/bin/fstool" --version 2>/dev/null)" = "fstool $fstool" ] && return
	have cargo || {
		missing+=("fstool $fstool: it is built by cargo, of Rust 1.95 or later")
		return
	}
	echo "interop: building fstool; this takes some minutes, once" >&2
	CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_NET_RETRY=2 CARGO_HTTP_TIMEOUT=30 CARGO_TARGET_DIR="$cache/target" \
		limit "${DMGBENCH_INTEROP_BUILD_SECONDS:-1200}" cargo install --quiet --locked --root "$cache" --version "$fstool" fstool ||
		missing+=("fstool $fstool")
	rm -rf "$cache/target"
}

mkdir -p "$cache" || exit 1
system_programs
python_modules
rust_programs
[ ${#missing[@]} -eq 0 ] && exit 0
printf 'interop: not at hand: %s\n' "${missing[@]}" >&2
exit 1
