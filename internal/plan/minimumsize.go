package plan

import (
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// smallestUseful is the smallest image that is worth measuring with the case's file systems and steps.
func smallestUseful(c Case) units.Bytes {
	least, harmed := units.Bytes(0), false
	walk(c.Steps, func(s *Step) { harmed = harmed || s.Do == "damage" && s.Kind == "volume" })
	for _, name := range c.Settings.Filesystems {
		f := image.FilesystemNamed(name)
		least = max(least, units.Bytes(f.UsefulSize))
		if harmed {
			least = max(least, units.Bytes(f.RepairableSize))
		}
	}
	return least
}

// minimumSizeOf is the smallest image that the file system can be made in.
func minimumSizeOf(filesystem string) units.Bytes {
	return units.Bytes(image.FilesystemNamed(filesystem).MinSize + image.PartitionTableSize)
}

// smallestImage is the smallest image that one of the file systems can be made in.
func smallestImage(filesystems []string) units.Bytes {
	least := units.Bytes(0)
	for _, f := range filesystems {
		if n := minimumSizeOf(f); least == 0 || n < least {
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
			hintf("at least %d B: %s for the volume and the rest for the partition table", least, least-image.PartitionTableSize)
		return
	}
	for _, f := range s.Filesystems {
		if least := minimumSizeOf(f); s.Size < least {
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
