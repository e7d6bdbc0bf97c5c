package container

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// foreigns are disk image formats of other programs, by what their files begin with. Sources: QEMU's docs/interop (qcow2,
// qed_spec, parallels) and block drivers, VMware's "Virtual Disk Format 5.0", Microsoft's VHD 1.0 and MS-VHDX.
var foreigns = []struct {
	at    int
	magic string
	name  string
}{
	{0, "QFI\xfb\x00\x00\x00\x01", "QEMU image (qcow, version 1)"},
	{0, "QFI\xfb\x00\x00\x00\x02", "QEMU image (qcow2, version 2)"},
	{0, "QFI\xfb\x00\x00\x00\x03", "QEMU image (qcow2, version 3)"},
	{0, "QED\x00", "QEMU image (QED)"},
	{0, "KDMV", "VMware image (VMDK)"},
	{0, "COWD", "VMware image (VMDK of ESX)"},
	{0, "# Disk DescriptorFile", "VMware image (VMDK descriptor)"},
	{0x40, "\x7f\x10\xda\xbe", "VirtualBox image (VDI)"},
	{0, "conectix", "Virtual PC image (VHD)"},
	{0, "vhdxfile", "Hyper-V image (VHDX)"},
	{0, "WithoutFreeSpace", "Parallels image"},
	{0, "WithouFreSpacExt", "Parallels image"},
}

// vhdVersion is the only version of the footer of VHD images, at byte 12 of it.
const vhdVersion = 0x00010000

// foreign names the format of another program that a file is of, "" if it is none. An image of VHD with all of its sectors
// has its mark at the end alone.
func foreign(f io.ReaderAt, size int64) (string, error) {
	head, err := readExactly(f, 0, min(size, 128))
	if err != nil {
		return "", err
	}
	for _, k := range foreigns {
		if len(head) >= k.at && bytes.HasPrefix(head[k.at:], []byte(k.magic)) {
			return k.name, nil
		}
	}
	if size < SectorSize {
		return "", nil
	}
	foot, err := readExactly(f, size-SectorSize, 16)
	if err != nil {
		return "", err
	}
	if string(foot[:8]) == "conectix" && binary.BigEndian.Uint32(foot[12:]) == vhdVersion {
		return "Virtual PC image (VHD of fixed size)", nil
	}
	return "", nil
}

// Foreign names the format of another program that a raw image looks like, "" for all others: such a file is a raw image
// only if whoever opens it says so.
func Foreign(img Image) (string, error) {
	r, ok := img.(*raw)
	if !ok {
		return "", nil
	}
	name, err := foreign(r, r.Size())
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", r.path, err)
	}
	return name, nil
}
