package inprocess

import (
	"fmt"
	"path"
	"strings"

	"dmgbench/internal/container"
	"dmgbench/internal/gpt"
)

// OpenWith are command lines for macOS and for Linux with 7-Zip, exfatprogs and
// the kernel's exFAT. Linux has no tool of its own for bundles: a line puts
// the bands together to a raw image in the current folder, which the others
// then open.
func (c *image) OpenWith(name string) []string {
	lines := []string{"hdiutil attach -readonly " + quote(name)}
	if c.bundle() {
		raw := strings.TrimSuffix(path.Base(name), container.Extension(container.UDSB)) + ".img"
		lines = append(lines, fmt.Sprintf(
			`truncate -s %d %[2]s && for b in %[3]s/bands/*; do dd if="$b" of=%[2]s bs=1M oflag=seek_bytes seek=$((0x${b##*/} * %[4]d)) conv=notrunc,sparse status=none; done`,
			c.spec.Size, quote(raw), quote(name), c.spec.BandSize))
		name = raw
	}
	at := gpt.FirstDefault * gpt.SectorSize
	return append(lines,
		"7zz l -tGPT "+quote(name),
		fmt.Sprintf(`loop=$(sudo losetup --find --show --read-only --offset %d %s) && sudo fsck.exfat -n "$loop"; sudo losetup -d "$loop"`, at, quote(name)),
		fmt.Sprintf("sudo mount -t exfat -o ro,loop,offset=%d %s /mnt", at, quote(name)))
}

// quote is for a shell. A leading "-" would pass for an option.
func quote(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
