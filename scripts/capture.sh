#!/bin/sh
# Asks the disk image tools everything that dmgbench depends on, with small images, and keeps the answers in DIR.
# usage: capture.sh DIR        on a Mac: Apple's hdiutil and diskutil; needs the system's own commands only
#        DMGBENCH=/path/dmgbench capture.sh DIR     on Linux, as root: `dmgbench hdiutil`
#
# DIR/answers.tsv has one line for each command: number, exit status (143: ended after 5 minutes), the parser of the
# engine that reads the output ("-": none), name, command line. DIR/NNN.out and DIR/NNN.err are what it printed.
# Names of the user and of the machine, the passphrase, and paths outside of the working folder are replaced.
# The images lie in a temporary folder; they are detached and removed at the end. Other images are not touched.
set -u
LC_ALL=C; export LC_ALL
dir=${1:?usage: capture.sh DIR}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd -P) || exit 1
[ -z "$(ls -A "$dir")" ] || { echo "capture.sh: $dir is not empty" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/dmgbench-capture-XXXXXX") && work=$(cd "$work" && pwd -P) || exit 1
trap 'release; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
if [ -n "${DMGBENCH:-}" ]; then vendor=dmgbench fs=ext4 defs=ExFAT; else vendor=Apple fs=APFS defs=APFS; fi
pass=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
n=0

# tool runs hdiutil or diskutil: Apple's, or those of dmgbench.
tool() {
	case $vendor-$1 in
	dmgbench-hdiutil) shift; exec "$DMGBENCH" hdiutil "$@" ;;
	dmgbench-diskutil) shift; exec "$DMGBENCH" hdiutil diskutil "$@" ;;
	Apple-hdiutil) shift; exec /usr/bin/hdiutil "$@" ;;
	Apple-diskutil) shift; exec /usr/sbin/diskutil "$@" ;;
	esac
	exec "$@"
}

# private prints a sed script that replaces what is private, the longest first. Names of fewer than three letters
# stay: they would match everywhere.
private() {
	{
		echo "$pass \$PASSPHRASE"; echo "$work \$WORK"; echo "${HOME:-} \$HOME"; echo "${DMGBENCH:-} \$PROGRAM"
		echo "$(hostname) \$HOST"; [ "$(id -u)" = 0 ] || echo "$(id -un) \$USER"
		[ "$(id -u)" = 0 ] || echo "$(id -F 2>/dev/null) \$USERNAME"
	} | sed -n 's/[].*[^/&+?(){}|]/\\&/g; s/^\(....*\) \(\$[A-Z]*\)$/s\/\1\/\2\/g/p' |
		awk '{ print length, $0 }' | sort -rn | cut -d' ' -f2-
	# Strings that are paths: those of the system stay.
	printf '%s\n' 's#<string>(/(dev|System|usr|sbin|bin|private/tmp)(/[^<]*)?</string>)#<string>@KEPT@\1#g' \
		's#<string>/[^<]*</string>#<string>/$PRIVATE</string>#g' 's#@KEPT@##g'
}
private > "$work/private.sed"
redact() { sed -E -f "$work/private.sed"; }

# ask READS NAME COMMAND... runs one command and keeps its answer. $input is what its standard input reads.
input=/dev/null
ask() {
	reads=$1 name=$2; shift 2
	n=$((n + 1)); number=$(printf %03d $n)
	echo "$name" >&2
	(tool "$@") < $input > "$work/out" 2> "$work/err" & pid=$!
	(i=0; while [ $((i += 1)) -lt 300 ] && kill -0 $pid 2>&1; do sleep 1; done; kill $pid) > /dev/null 2>&1 9>&- &
	wait $pid; status=$?
	for e in out err; do [ ! -s "$work/$e" ] || redact < "$work/$e" > "$dir/$number.$e"; done
	line=$(printf '%s' "$*" | redact)
	printf '%s\t%s\t%s\t%s\t%s\n' $number $status $reads "$name" "$line" >> "$dir/answers.tsv"
	return $status
}

# disks are the devices of attached images that lie in the working folder.
disks() {
	(tool hdiutil info) < /dev/null 2> /dev/null |
		awk -v w="$work/" '/^image-path/ { ours = index($0, w) } ours && /^\/dev\// { print $1; ours = 0 }'
}
release() { for d in $(disks); do (tool hdiutil detach "$d" -force) < /dev/null > /dev/null 2>&1; done; }

# attached NAME TOOL OPTIONS IMAGE attaches, runs the function $then, and detaches.
then=:
attached() {
	at=$1; shift
	if ask attach "$at/attach" "$@"; then
		disk=$(disks | head -n 1)
		$then "${at%%/*}"
		ask - "$at/detach" hdiutil detach "$disk"
	fi
	release
}
point() { mkdir -p "$work/mnt-$1" && echo "$work/mnt-$1"; }
A='attach -plist -nobrowse -owners off -noverify -noautofsck -noautoopen'
size=98304 twice=196608 # sectors: 48 and 96 MiB

helps() {
	for v in create attach detach info imageinfo compact resize convert verify checksum isencrypted chpass; do
		ask - "help/$v" hdiutil $v -help
	done
	for v in 'image create blank' 'image create from' 'image attach' 'image info' 'image resize'; do
		ask - "help/diskutil-$(echo "$v" | tr ' ' -)" diskutil $v --help
	done
}

# while_attached asks what an attached image refuses, and for a detach while a file is open.
while_attached() {
	ask info "$1/info-attached" hdiutil info -plist
	ask - "$1/attach-again" hdiutil $A -nomount $P "$image"
	ask - "$1/compact-attached" hdiutil compact -batteryallowed $P "$image"
	ask - "$1/resize-attached" hdiutil resize -sectors $twice $P "$image"
	[ -d "$work/mnt-$1" ] && : > "$work/mnt-$1/open" && ask - "$1/detach-busy" hdiutil detach "$disk" \
		9< "$work/mnt-$1/open"
}

# image NAME TYPE EXTENSION [OPTION...] asks everything of one image.
image() {
	k=$1 kind=$2 image=$work/$1.$3; shift 3; P=
	case $k in *encrypted) P=-stdinpass; printf %s "$pass" > "$work/pass"; input=$work/pass ;; esac
	if ask - "$k/create" hdiutil create -sectors $size -type $kind -fs $fs -volname CAPTURE "$@" -plist "$image"; then
		ask imageinfo "$k/imageinfo" hdiutil imageinfo -plist $P "$image"
		ask isencrypted "$k/isencrypted" hdiutil isencrypted -plist "$image"
		ask isencrypted "$k/isencrypted-text" hdiutil isencrypted "$image"
		then=while_attached; attached $k hdiutil $A -mountpoint "$(point $k)" $P "$image"; then=:
		attached $k/read-only hdiutil $A -readonly -mountpoint "$(point $k)" $P "$image"
		attached $k/no-mount hdiutil $A -nomount $P "$image"
		ask compact $k/compact hdiutil compact -batteryallowed $P "$image"
		ask limits $k/limits hdiutil resize -limits $P "$image"
		ask - $k/resize hdiutil resize -sectors $twice $P "$image"
		ask - $k/verify hdiutil verify $P "$image"
		if [ -n "$P" ]; then
			echo wrong > "$work/pass"; ask - $k/attach-wrong hdiutil $A -nomount $P "$image"; release
		fi
	fi
	input=/dev/null
}

filesystems() {
	for f in APFS 'Case-sensitive APFS' 'Journaled HFS+' ExFAT 'MS-DOS FAT32' ext4; do
		k=fs-$(echo "$f" | tr 'A-Z ' 'a-z-')
		ask - "$k/create" hdiutil create -sectors $size -type UDIF -fs "$f" -volname CAPTURE -plist "$work/$k.dmg" ||
			continue
		ask imageinfo "$k/imageinfo" hdiutil imageinfo -plist "$work/$k.dmg"
		attached "$k" hdiutil $A -mountpoint "$(point "$k")" "$work/$k.dmg"
	done
	ask - nospotlight/create hdiutil create -sectors $size -type UDIF -fs $fs -volname CAPTURE -nospotlight -plist \
		"$work/nospotlight.dmg"
	ask - bare/create hdiutil create -sectors $size -type UDIF -layout NONE -plist "$work/bare.dmg" &&
		attached bare hdiutil $A -nomount "$work/bare.dmg"
}

conversions() {
	ask - source/create hdiutil create -sectors $size -type UDIF -fs $defs -volname CAPTURE -plist "$work/source.dmg" ||
		return
	for f in UDRW.dmg UDRO.dmg UDCO.dmg UDZO.dmg UDBZ.dmg ULFO.dmg ULMO.dmg UFBI.dmg UDTO.cdr UDSP.sparseimage \
		UDSB.sparsebundle; do
		k=to-${f%.*}
		ask - $k/convert hdiutil convert "$work/source.dmg" -format ${f%.*} -o "$work/to-$f" || continue
		ask imageinfo $k/imageinfo hdiutil imageinfo -plist "$work/to-$f"
		ask - $k/verify hdiutil verify "$work/to-$f"
		attached $k hdiutil $(echo "$A" | sed s/-noverify/-verify/) -readonly -nomount "$work/to-$f"
		rm -rf "$work/to-$f"
	done
}

by_diskutil() {
	for f in RAW.dmg UDSB.sparsebundle ASIF.asif; do
		k=du-${f%.*} i=$work/du-$f
		ask - $k/create diskutil image create blank --format ${f%.*} --size 50331648 --fs $defs \
			--volumeName CAPTURE "$i" || continue
		ask imageinfo $k/info diskutil image info --plist "$i"
		ask - $k/imageinfo hdiutil imageinfo -plist "$i"
		attached $k diskutil image attach --plist --nobrowse --mountPoint "$(point $k)" "$i"
		attached $k/no-mount diskutil image attach --plist --noMount "$i"
		ask - $k/limits diskutil image resize --plist "$i"
		ask - $k/resize diskutil image resize --size 100663296 "$i"
	done
	printf '%s\n' "$pass" > "$work/pass"; input=$work/pass
	ask - du-encrypted/create diskutil image create blank --encrypt --stdinpassphrase --format ASIF --size 50331648 \
		--fs $defs --volumeName CAPTURE "$work/du-encrypted.asif" &&
		ask imageinfo du-encrypted/info diskutil image info --plist --stdinpassphrase "$work/du-encrypted.asif"
	input=/dev/null
	for f in UDRO UDZO ASIF; do
		case $f in ASIF) e=asif ;; *) e=dmg ;; esac
		ask - du-from/$f diskutil image create from --format $f "$work/du-RAW.dmg" "$work/from-$f.$e"
	done
}

refusals() {
	ask - missing/attach hdiutil $A -nomount "$work/missing.dmg"
	ask - missing/diskutil-attach diskutil image attach --plist --noMount "$work/missing.dmg"
	ask - missing/detach hdiutil detach /dev/disk987654
	ask - missing/eject diskutil eject /dev/disk987654
	yes 'no image.' | head -n 1000 > "$work/junk.dmg"
	ask - junk/attach hdiutil $A -nomount "$work/junk.dmg"; release
	ask - junk/imageinfo hdiutil imageinfo -plist "$work/junk.dmg"
	ask - junk/diskutil-info diskutil image info --plist "$work/junk.dmg"
	ask - exists/create hdiutil create -sectors $size -type UDIF -fs $fs -volname CAPTURE -plist "$work/junk.dmg"
	ask - option/attach hdiutil attach -nosuchoption "$work/junk.dmg"
	ask - verb/hdiutil hdiutil nosuchverb
	ask - verb/diskutil diskutil nosuchverb
	LC_ALL=de_DE.UTF-8; ask - language/german hdiutil imageinfo "$work/missing.dmg"; LC_ALL=C
}

# machine asks what a Mac knows of itself, and what APFS has logged of trims.
machine() {
	[ $vendor = Apple ] || return
	ask - system/sw_vers sw_vers
	for c in 'pmset -g' 'pmset -g batt' 'pmset -g therm' 'tmutil status' 'mdutil -s /' 'fdesetup status' \
		'diskutil info -plist /' 'notifyutil -g com.apple.system.thermalpressurelevel' 'ioreg -a -l -r -c IOBlockStorageDriver -w 0' \
		'sysctl hw.nperflevels kern.hv_vmm_present kern.memorystatus_vm_pressure_level vm.swapusage'; do
		ask - "system/$(echo "$c" | cut -d' ' -f1,2 | tr ' /' '--')" $c
	done
	ask trims system/trim-log log show --style ndjson --last 10m --predicate \
		'senderImagePath CONTAINS "apfs" AND (eventMessage CONTAINS "spaceman_" OR eventMessage CONTAINS "set_backingstore")'
}

system=$(sw_vers -productVersion 2> /dev/null || uname -sr)
printf 'vendor\t%s\nsystem\t%s\nmade\t%s\n' $vendor "$system" "$(date -u +%F)" > "$dir/capture.tsv"
helps
ask info info/before hdiutil info -plist
image udrw UDIF dmg
image udsp SPARSE sparseimage
image udsb SPARSEBUNDLE sparsebundle -imagekey sparse-band-size=2048
fs=$defs
image udrw-encrypted UDIF dmg -encryption AES-256 -stdinpass
image udsb-encrypted SPARSEBUNDLE sparsebundle -imagekey sparse-band-size=2048 -encryption AES-128 -stdinpass
filesystems
conversions
by_diskutil
refusals
machine
ask info info/after hdiutil info -plist
echo "$n answers in $dir"
