package inprocess

import (
	"fmt"
	"math/bits"
	"path"
	"runtime"
	"strings"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/gpt"
)

// OpenWith are command lines for macOS and for Linux with 7-Zip, exfatprogs and
// the kernel's exFAT. Linux has no tool of its own for sparse formats: a line
// makes a raw image of one in the current folder, which the others then open.
// For bundles it needs no tool, for UDSP fstool (crates.io), for ASIF
// dissect.hypervisor (PyPI). On Linux this program's own commands come first: they need no root and no other tool.
func (c *image) OpenWith(name string) []string {
	if runtime.GOOS != "linux" {
		return c.openWithOthers(name)
	}
	own := []string{"dmgbench hdiutil attach -readonly " + engine.ShellQuote(name),
		"dmgbench hdiutil ls " + engine.ShellQuote(name)}
	return append(own, c.openWithOthers(name)...)
}

func (c *image) openWithOthers(name string) []string {
	lines := []string{"hdiutil attach -readonly " + engine.ShellQuote(name)}
	raw := strings.TrimSuffix(path.Base(name), container.Extension(c.spec.Format)) + ".img"
	switch c.spec.Format {
	case container.UDSB:
		// The dd of a Mac seeks by blocks only, and knows "1m" where the one of Linux knows "1M".
		block := int64(1) << min(20, bits.TrailingZeros64(uint64(c.spec.BandSize)))
		lines = append(lines, fmt.Sprintf(
			`truncate -s %d %[2]s && for b in %[3]s/bands/*; do dd if="$b" of=%[2]s bs=%[4]d seek=$((0x${b##*/} * %[5]d)) conv=notrunc,sparse status=none; done`,
			c.spec.Size, engine.ShellQuote(raw), engine.ShellQuote(name), block, c.spec.BandSize/block))
		name = raw
	case container.UDSP:
		lines = append(lines, fmt.Sprintf("fstool convert %s %s", engine.ShellQuote(name), engine.ShellQuote(raw)))
		name = raw
	case container.ASIF:
		lines = []string{"diskutil image attach --readOnly " + engine.ShellQuote(name), fmt.Sprintf(
			`python3 -c 'import shutil, sys; from dissect.hypervisor.disk.asif import ASIF; shutil.copyfileobj(ASIF(open(sys.argv[1], "rb")).open(), open(sys.argv[2], "wb"))' %s %s`,
			engine.ShellQuote(name), engine.ShellQuote(raw))}
		name = raw
	}
	at := gpt.FirstDefault * gpt.SectorSize
	return append(lines,
		"7zz l -tGPT "+engine.ShellQuote(name),
		fmt.Sprintf(`loop=$(sudo losetup --find --show --read-only --offset %d %s) && sudo fsck.exfat -n "$loop"; sudo losetup -d "$loop"`, at, engine.ShellQuote(name)),
		fmt.Sprintf("sudo mount -t exfat -o ro,loop,offset=%d %s /mnt", at, engine.ShellQuote(name)))
}
