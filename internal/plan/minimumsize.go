package plan

import (
	"strings"

	"dmgbench/internal/units"
)

// minimumSize is how small an image can be for a file system.
type minimumSize struct {
	volume     units.Bytes // no program makes the file system in less
	useful     units.Bytes // smallest image that is worth measuring: room for journals and checkpoints; scaling stops there
	repairable units.Bytes // smallest image whose volume can be repaired when its start is gone, 0: as works
}

// tables is what a GUID partition table takes of an image in addition to its one
// volume: the first MiB, to which the volume is aligned, and the 33 sectors of
// the copy at the end (UEFI 2.10, section 5.3).
const tables = mib + 33*512

// minimumSizes are those of every file system that a plan can name: mkfs.xfs
// (xfsprogs 5.19 and later) refuses less than 300 MiB, mkfs.btrfs 114,294,784 B
// with its default profiles; FAT32 needs 65,525 clusters of 512 B and its two
// tables (Microsoft, FAT32 File System Specification 1.03), with alignment 34
// MiB; the others can be made in 1 MiB.
var minimumSizes = map[string]minimumSize{
	"APFS": {mib, 32 * mib, 0}, "HFS+": {mib, 32 * mib, 0}, "exFAT": {mib, 8 * mib, 0}, "FAT32": {34 * mib, 40 * mib, 0},
	"ext4": {mib, 16 * mib, 160 * mib}, "XFS": {300 * mib, 384 * mib, 0}, "btrfs": {114_294_784, 128 * mib, 0},
}

// smallestUseful is the smallest image that is worth measuring with the case's file systems and steps.
func smallestUseful(c Case) units.Bytes {
	least, harmed := units.Bytes(0), false
	walk(c.Steps, func(s *Step) { harmed = harmed || s.Do == "damage" && s.Kind == "volume" })
	for _, name := range c.Settings.Filesystems {
		f := minimumSizes[name]
		least = max(least, f.useful)
		if harmed {
			least = max(least, f.repairable)
		}
	}
	return least
}

// smallestImage is the smallest image that one of the file systems can be made in.
func smallestImage(filesystems []string) units.Bytes {
	least := units.Bytes(0)
	for _, f := range filesystems {
		if n := minimumSizes[f].volume + tables; least == 0 || n < least {
			least = n
		}
	}
	return least
}

// checkMinimumSize reports images in which their file system cannot be made; where it is
// one of several, only that it is out of question.
func (c *checker) checkMinimumSize(s *Settings) {
	if s.Size == 0 || !c.first("floor", [2]any{s.Size, strings.Join(s.Filesystems, " ")}) {
		return
	}
	at := c.settingAt("size")
	if least := smallestImage(s.Filesystems); s.Size < least {
		c.problem(at.off, "size", "an image of %s is too small for %s", s.Size, joinNames(s.Filesystems)).
			hintf("at least %d B: %s for the volume and the rest for the partition table", least, least-tables)
		return
	}
	for _, f := range s.Filesystems {
		if least := minimumSizes[f].volume + tables; s.Size < least {
			c.warn(at.off, "size", "an image of %s is too small for %s, which needs %d B", s.Size, f, least).
				hintf("make it larger, or leave %s out of filesystem_preference", f)
		}
	}
}

// checkResize reports a resize below the smallest image.
func (f *stepChecker) checkResize(s *Step) {
	if least := smallestImage(f.k.Settings.Filesystems); s.Size > 0 && s.Size < least {
		f.atStep(s, "floor", "resize: an image of %s is too small for %s", s.Size, joinNames(f.k.Settings.Filesystems)).
			hintf("at least %d B", least)
	}
}
