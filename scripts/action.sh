#!/usr/bin/env bash
# The commands of action.yml, for the bash 3.2 of macOS too. Everything that a user gives comes by the environment.
#
#   action.sh install   puts dmgbench on the path: release VERSION, or built from these sources
#   action.sh run       runs PLAN with ENGINE, FLAGS, PAUSE and ON; keeps the exit status for later steps
#   action.sh baseline  finds BASELINE, a run folder or an artifact of BRANCH
#   action.sh verdict   compares with BASELINE_FOLDER, by THRESHOLD, OP and STRICT, and ends with the status of the run
#                       or of the comparison
set -euo pipefail

# set_output hands a value to later steps. A line end would start another output.
set_output() { printf '%s=%s\n' "$1" "$(printf %s "$2" | tr -d '\r\n')" >>"$GITHUB_OUTPUT"; }

# annotate shows a message in the workflow run. %, CR and LF are escaped, since each could end the command.
annotate() {
	local text=${2//'%'/%25}
	text=${text//$'\r'/%0D}
	printf '::%s title=dmgbench::%s\n' "$1" "${text//$'\n'/%0A}"
}

# summarize adds Markdown to the summary of the job, whose limit is 1 MiB, in whole lines. It reads to the end: a
# command that writes to a closed pipe fails.
summarize() {
	LC_ALL=C awk '{ bytes += length($0) + 1 } bytes <= 500000 { print; next } { cut++ }
		END { if (cut) print "\n" cut " more lines were left out: the summary of a job has a limit." }' >>"$GITHUB_STEP_SUMMARY"
}

# install_release downloads an archive and checks it against the release's checksums, and these against the signature
# of the workflow that made the release.
install_release() {
	local os=linux arch=amd64 name repository=$GITHUB_REPOSITORY
	[ "$(uname)" = Darwin ] && os=darwin
	case "$(uname -m)" in arm64 | aarch64) arch=arm64 ;; esac
	# The context github.action_repository is empty in some steps; the folder of the action has the name.
	case "$GITHUB_ACTION_PATH" in */_actions/*) repository=$(cut -d/ -f1,2 <<<"${GITHUB_ACTION_PATH##*/_actions/}") ;; esac
	name=dmgbench_${VERSION}_${os}_$arch
	cd "$1"
	gh release download "v$VERSION" --repo "$repository" --pattern "$name.tar.gz" --pattern checksums.txt \
		--pattern checksums.txt.sigstore.json --clobber
	cosign verify-blob --bundle checksums.txt.sigstore.json \
		--certificate-oidc-issuer https://token.actions.githubusercontent.com \
		--certificate-identity "https://github.com/$repository/.github/workflows/release.yml@refs/tags/v$VERSION" \
		checksums.txt || {
		annotate error "the checksums of release $VERSION are not signed by the workflow of $repository"
		return 1
	}
	grep -F "  $name.tar.gz" checksums.txt >expected || {
		annotate error "release $VERSION has no checksum of $name.tar.gz"
		return 1
	}
	if command -v sha256sum >/dev/null; then sha256sum -c expected; else shasum -a 256 -c expected; fi
	tar -xzf "$name.tar.gz" dmgbench
}

# check_threshold comes before the run, which may take hours.
check_threshold() {
	[[ $THRESHOLD =~ ^[0-9]+([.][0-9]+)?\ ?%$ ]] || {
		annotate error "threshold $THRESHOLD is not a share such as 10%"
		return 2
	}
}

install() {
	local bin=$RUNNER_TEMP/dmgbench-bin
	check_threshold
	mkdir -p "$bin"
	if [ -n "$VERSION" ]; then
		case "$VERSION" in *[!0-9A-Za-z.+-]*) annotate error "version $VERSION is not the version of a release" && return 2 ;; esac
		(install_release "$bin")
	else
		(cd "$(dirname "$0")/.." && CGO_ENABLED=0 go build -trimpath -o "$bin/dmgbench" ./cmd/dmgbench)
	fi
	echo "$bin" >>"$GITHUB_PATH"
	"$bin/dmgbench" version
}

# run keeps a failure for the verdict, so that the run folder is uploaded first.
run() {
	local out status=0 line
	out=$(mktemp -d "$RUNNER_TEMP/dmgbench-run.XXXXXX")
	set -f # FLAGS are split at blanks; their patterns are not expanded
	# shellcheck disable=SC2086
	set -- $FLAGS
	while IFS= read -r line; do
		[ -z "$line" ] || set -- "$@" "--on=$line"
	done <<<"$ON"
	[ -z "$PAUSE" ] || set -- "$@" "--pause=$PAUSE"
	set -- dmgbench run "$@" --yes "--engine=$ENGINE" "--out=$out" -- "$PLAN"
	# This program's own hdiutil mounts, and leaves the run folder to the user who called sudo.
	if [ "$ENGINE" = hdiutil ] && [ "$(uname)" = Linux ] && [ "$(id -u)" != 0 ]; then
		set -- sudo -n env "PATH=$PATH" "$@"
	fi
	"$@" || status=$?
	set_output status "$status"
	[ -z "$(ls -A "$out")" ] || set_output run-folder "$out"
	[ "$status" = 0 ] || annotate error "dmgbench run ended with status $status"
	write_summary "$out"
}

# write_summary adds the summary of a run, or of its sessions pooled.
write_summary() {
	set +f
	[ -f "$1/plan.toml" ] || set -- "$1"/[0-9]*/
	[ -f "$1/plan.toml" ] || return 0
	dmgbench report "$@" --format summary | summarize || annotate warning "no summary: dmgbench report failed"
}

# baseline takes the newest artifact of a run that succeeded: this run has uploaded its own, and a regression must not
# become the next baseline. It takes none of a pull request from a fork, since anyone can open one.
baseline() {
	local id artifacts newest
	if [ -d "$BASELINE" ]; then
		set_output folder "$BASELINE"
		return
	fi
	case "$BASELINE" in */*) annotate error "baseline $BASELINE is not a folder" && return 1 ;; esac
	artifacts='[.artifacts[] | select(.expired | not) | .workflow_run | select(.head_branch == env.BRANCH
		and .head_repository_id == .repository_id) | .id][:20][]'
	newest=$(gh api --method GET "repos/$GITHUB_REPOSITORY/actions/artifacts" -f "name=$BASELINE" -F per_page=100 --jq "$artifacts")
	for id in $newest; do
		[ "$(gh api "repos/$GITHUB_REPOSITORY/actions/runs/$id" --jq .conclusion)" = success ] || continue
		set_output run-id "$id"
		set_output folder "$RUNNER_TEMP/dmgbench-baseline"
		return
	done
	annotate warning "no successful run of branch $BRANCH has an artifact $BASELINE: compared with no other run"
}

verdict() {
	check_threshold
	local status=$RUN_STATUS
	set --
	[ -z "$OP" ] || set -- "--op=$OP"
	[ "$STRICT" != true ] || set -- "$@" --strict
	if [ "$status" = 0 ] && [ -n "$BASELINE_FOLDER" ]; then
		dmgbench compare "$@" "--threshold=$THRESHOLD" --format summary -- "$BASELINE_FOLDER" "$RUN_FOLDER" |
			tee "$RUNNER_TEMP/dmgbench-comparison.md" || status=$?
		summarize <"$RUNNER_TEMP/dmgbench-comparison.md"
		case "$status" in
		0) ;;
		2) # as after a change of the plan; a failure would keep this run from becoming the next baseline
			annotate warning "the baseline measured something else: nothing was compared"
			status=0
			;;
		5) annotate error "a regression of more than $THRESHOLD against the baseline" ;;
		6) annotate error "the comparison is undecided: a regression of $THRESHOLD is not excluded" ;;
		*) annotate error "dmgbench compare ended with status $status" ;;
		esac
	fi
	set_output status "$status"
	return "$status"
}

case "${1:-}" in
install | run | baseline | verdict) "$1" ;;
*) echo "usage: action.sh install|run|baseline|verdict" >&2 && exit 2 ;;
esac
