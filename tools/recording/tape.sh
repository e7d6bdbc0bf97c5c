#!/usr/bin/env bash
# Runs the plan quick in one terminal, follows it in another, and makes an animated SVG of what both showed.
# `make recording` writes docs/recording.svg with it. It needs tmux and bin/ of `make build`. Works with bash 3.2.
#
#   tools/recording/tape.sh >FILE.svg
#
# tmux is the terminal and the keyboard. Everything is executed: only the typing is invented. The engine is in-process
# everywhere, since it needs no privileges, so that every machine makes the same recording but for the figures.
set -euo pipefail
export LC_ALL=${LC_ALL:-C.UTF-8}
[ $# = 0 ] || { sed -n 's/^#   //p' "$0" >&2 && exit 2; }
command -v tmux >/dev/null || { echo "recording: tmux is not installed" >&2; exit 2; }
cd "$(dirname "$0")/../.."
bin=$PWD/bin
dir=$(mktemp -d)

# The folder of the socket is ours, so that no session of the user is seen or ended.
terminal() { tmux -u -S "$dir/socket" -f /dev/null "$@"; }

clean() {
	status=$?
	trap - EXIT INT TERM
	terminal kill-server 2>/dev/null || true
	rm -rf "$dir"
	exit "$status"
}
trap clean EXIT
trap 'exit 130' INT TERM

# record adds N frames, ten a second.
record() {
	local i
	for ((i = 0; i < $1; i++)); do
		terminal display-message -p $'#W\n'
		terminal capture-pane -e -p
		printf '\f'
		sleep 0.09
	done >>"$dir/frames"
}

# type_line types a command as a person does, and presses Enter.
type_line() {
	local i
	for ((i = 0; i < ${#1}; i++)); do
		terminal send-keys -l "${1:i:1}"
		record 1
	done
	record 5
	terminal send-keys Enter
}

# record_until records until the terminal shows a text, for at most half a minute.
record_until() {
	local i
	for ((i = 0; i < 300; i++)); do
		record 1
		if terminal capture-pane -p | grep -q "$1"; then return; fi
	done
	echo "recording: the terminal does not show \"$1\":" >&2
	terminal capture-pane -p >&2
	return 1
}

# COLORTERM gives the watcher its own colours; without TMUX it takes the terminal for one of a person.
cat >"$dir/bashrc" <<-RC
	unset TMUX
	export PATH="$bin:\$PATH" DMGBENCH_RUN_ENGINE=inprocess DMGBENCH_STATE="$dir/state" TERM=xterm-256color COLORTERM=truecolor
	PS1='\$ '
	cd "$dir"
RC
shell=(bash --noprofile --rcfile "$dir/bashrc")
# The status line of tmux would take a line of the terminal, and its name must stay what we call it.
terminal new-session -d -x 80 -y 24 -n 'terminal 1' "${shell[@]}" \; set -g status off \; set -g allow-rename off \; \
	set -g automatic-rename off
terminal new-window -d -n 'terminal 2' "${shell[@]}"
record_until '^\$'
record 10
type_line 'dmgbench run quick'
record_until '1/9'
record 6
terminal select-window -t 'terminal 2'
record 5
type_line 'dmgbench watch'
record_until 'of 9 case'
record 20
terminal send-keys Right
record_until 'the run has ended'
record 30
terminal send-keys q
record 10
terminal select-window -t 'terminal 1'
record_until '^report: '
record 10

# Processor and system; not the file system of a folder that is deleted.
machine=$("$bin/dmgbench" report "$dir"/runs/quick-* --format summary | sed -n 's/; [^;]* |$//; s/, [0-9.]* GB of memory//; s/^| On | //p')
go run ./tools/recording "$machine" \
	"Engine in-process, $(date -u +%Y-%m-%d). Waits are shortened to 1.5 s. The figures are those of this machine." <"$dir/frames"
