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

# by_number sorts whole disks by their number: that of an image comes before the one that macOS makes of an APFS
# container in it. To detach that one would leave the image attached.
by_number() { grep -E '^/dev/[a-z]+[0-9]+$' | sed 's/[0-9]*$/ &/' | sort -k 2n | tr -d ' '; }

# disk_of prints the whole disk in the property list of an attach.
disk_of() {
	awk 'BEGIN { RS = "<" }
		/^key>/ { entry = /^key>dev-entry/ }
		/^string>/ && entry { sub(/^string>(\/dev\/)?/, ""); print "/dev/" $0 }' "$1" | by_number | head -n 1
}

# release detaches the images in the working folder.
release() {
	for d in $( (tool hdiutil info) < /dev/null 2> /dev/null |
		awk -v w="$work/" '/^image-path/ { ours = index($0, w) } ours && /^\/dev\// { print $1 }' | by_number); do
		{ (tool hdiutil detach "$d" -force) || (tool diskutil eject "$d"); } < /dev/null > /dev/null 2>&1
	done
}

# attached NAME TOOL OPTIONS IMAGE attaches, runs the function $then, and detaches.
then=:
attached() {
	at=$1; shift
	if ask attach "$at/attach" "$@"; then
		disk=$(disk_of "$work/out")
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

# listed asks how the lists name an attached image.
listed() {
	ask info "$1/info-attached" hdiutil info -plist
	[ $vendor != Apple ] || ask - "$1/registry" ioreg -a -l -r -c AppleDiskImageDevice -w 0
}

# open_questions asks what no public source answers: see docs/first-mac.md.
open_questions() {
	q=$work/q
	ask - largest-band/create hdiutil create -sectors $size -type SPARSEBUNDLE -fs $fs -volname CAPTURE \
		-imagekey sparse-band-size=16777216 -plist "$q-band.sparsebundle"
	ask - kernel/create hdiutil create -sectors $size -type UDIF -fs $fs -volname CAPTURE -plist "$q.dmg" &&
		for o in kernel nokernel; do then=listed; attached $o hdiutil $A -$o -nomount "$q.dmg"; then=:; done
	ask - bare-resize/create hdiutil create -sectors $size -type SPARSE -layout NONE -plist "$q-bare.sparseimage" &&
		ask - bare-resize/image-only hdiutil resize -sectors $twice -imageonly "$q-bare.sparseimage"
	printf 'first\0second' > "$work/pass"; input=$work/pass
	ask - two-passphrases/create hdiutil create -sectors $size -type SPARSE -fs $defs -volname CAPTURE \
		-encryption AES-128 -stdinpass -plist "$q-first.sparseimage" &&
		ask - two-passphrases/convert hdiutil convert "$q-first.sparseimage" -format UDSP -o "$q-second.sparseimage" \
			-encryption AES-128 -stdinpass
	for p in first second; do
		printf $p > "$work/pass"
		attached two-passphrases/$p hdiutil $A -nomount -stdinpass "$q-second.sparseimage"
	done
	input=/dev/null
	[ $vendor = Apple ] || return
	ask - case-sensitive/create diskutil image create blank --format ASIF --size 50331648 --fs APFSX \
		--volumeName CAPTURE "$q-case.asif"
	cp "$q-bare.sparseimage" "$q-foreign.dmg" && attached foreign-extension hdiutil $A -nomount "$q-foreign.dmg"
	then=quick_check; attached quick-check hdiutil $A -nomount "$q.dmg"
	# The container starts behind the table: 64 KiB of it are overwritten, the copies at its end are not.
	dd if=/dev/zero of="$q.dmg" bs=4096 seek=5 count=16 conv=notrunc 2> /dev/null
	attached damaged-container hdiutil $A -nomount "$q.dmg"; then=:
	# The user's own settings stay: the arguments and the other home are for these commands alone.
	ask - language/arguments hdiutil imageinfo "$work/missing.dmg" -AppleLanguages '(en)' -AppleLocale en_US
	mkdir -p "$work/home/Library/Preferences"
	printf '%s\n' '<?xml version="1.0" encoding="UTF-8"?>' '<plist version="1.0"><dict><key>AppleLanguages</key>' \
		'<array><string>en</string></array></dict></plist>' > "$work/home/Library/Preferences/.GlobalPreferences.plist"
	CFFIXED_USER_HOME=$work/home; export CFFIXED_USER_HOME
	ask - language/home hdiutil imageinfo "$work/missing.dmg"
	unset CFFIXED_USER_HOME
}

# quick_check checks the devices of an image that is attached without a mount.
quick_check() {
	for s in $(diskutil list "$disk" | awk '$NF ~ /^disk[0-9]+s[0-9]+$/ { print $NF }'); do
		ask - "$1/fsck_apfs-$s" fsck_apfs -q "/dev/r$s"
		ask - "$1/verifyVolume-$s" diskutil verifyVolume "/dev/$s"
	done
}

by_diskutil() {
	for f in RAW.dmg UDSB.sparsebundle ASIF.asif; do
		k=du-${f%.*} i=$work/du-$f
		ask - $k/create diskutil image create blank --format ${f%.*} --size 50331648 --fs $defs \
			--volumeName CAPTURE "$i" || continue
		ask imageinfo $k/info diskutil image info --plist "$i"
		ask - $k/imageinfo hdiutil imageinfo -plist "$i"
		then=listed; attached $k diskutil image attach --plist --nobrowse --mountPoint "$(point $k)" "$i"; then=:
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
printf 'vendor\t%s\nsystem\t%s\nmade\t%s\nbuild\t%s\n' $vendor "$system" "$(date -u +%Y-%m-%d)" \
	"$(sw_vers -buildVersion 2> /dev/null || uname -v)" > "$dir/capture.tsv"
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
open_questions
machine
ask info info/after hdiutil info -plist
echo "$n answers in $dir"
