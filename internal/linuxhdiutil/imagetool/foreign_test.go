package imagetool

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refuseForeign runs every verb that opens an image, and the consents to take it for a raw one.
func refuseForeign(t *testing.T, m *machine, name, found string) {
	t.Helper()
	for _, line := range []string{"imageinfo ", "convert -format UDZO -o out ", "attach -nomount ", "attach ", "verify ", "checksum -type MD5 ", "pmap ",
		"resize -limits ", "compact ", "isencrypted ", "ls ", "extract -d out ", "diskutil image info ", "diskutil image attach "} {
		m.refused(1, found, line+name)
		assert.Contains(t, m.err, "hint: qemu-img convert -O raw ", line)
	}
	assert.NoFileExists(t, m.path("out.dmg"))
	assert.NoDirExists(t, m.path("out"))
	assert.Empty(t, m.at.requests)
	content, err := os.ReadFile(m.path(name))
	require.NoError(t, err)
	if len(content)%512 != 0 {
		return
	}
	m.do("imageinfo -format -srcimagekey diskimage-class=CRawDiskImage " + name)
	assert.Equal(t, "UDRW\n", m.out)
	assert.Empty(t, m.err)
	m.do("attach -nomount -imagekey diskimage-class=CRawDiskImage " + name)
	assert.Len(t, m.at.requests, 1)
	m.do("detach loop0")
	m.write("by-name.raw", string(content))
	m.do("imageinfo -format by-name.raw")
	assert.Equal(t, "UDRW\n", m.out)
	assert.Contains(t, m.err, `WARNING: "by-name.raw" looks like a `+found)
}

// TestForeignImages: images of other programs are named, and are raw ones only for those who say so.
func TestForeignImages(t *testing.T) {
	vdi := "<<< Oracle VM VirtualBox Disk Image >>>\n" + strings.Repeat("\x00", 24) + "\x7f\x10\xda\xbe\x01\x00\x01\x00"
	for found, head := range map[string]string{
		"QEMU image (qcow, version 1)":         "QFI\xfb\x00\x00\x00\x01",
		"QEMU image (qcow2, version 2)":        "QFI\xfb\x00\x00\x00\x02",
		"QEMU image (qcow2, version 3)":        "QFI\xfb\x00\x00\x00\x03",
		"QEMU image (QED)":                     "QED\x00\x00\x00\x01\x00",
		"VMware image (VMDK)":                  "KDMV\x01\x00\x00\x00",
		"VMware image (VMDK of ESX)":           "COWD\x01\x00\x00\x00",
		"VirtualBox image (VDI)":               vdi,
		"Virtual PC image (VHD)":               "conectix\x00\x00\x00\x02",
		"Hyper-V image (VHDX)":                 "vhdxfileQ\x00E\x00M\x00U\x00",
		"Parallels image":                      "WithouFreSpacExt\x02\x00\x00\x00",
		"Virtual PC image (VHD of fixed size)": "",
	} {
		t.Run(found, func(t *testing.T) {
			m := newMachine(t)
			image := head + strings.Repeat("\x00", 1<<20-len(head))
			if head == "" {
				image += "conectix\x00\x00\x00\x02\x00\x01\x00\x00" + strings.Repeat("\xff", 496)
			}
			m.write("disk.img", image)
			refuseForeign(t, m, "disk.img", found)
		})
	}
	m := newMachine(t)
	m.write("disk.vmdk", "# Disk DescriptorFile\nversion=1\n")
	refuseForeign(t, m, "disk.vmdk", "VMware image (VMDK descriptor)")
}

// TestImagesOfQEMU: those that qemu-img makes are recognised.
func TestImagesOfQEMU(t *testing.T) {
	program, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("qemu-img is not installed (apt-get install qemu-utils)")
	}
	for _, c := range []struct{ format, options, found string }{
		{"qcow2", "", "QEMU image (qcow2, version 3)"},
		{"qcow2", "compat=0.10", "QEMU image (qcow2, version 2)"},
		{"qcow", "", "QEMU image (qcow, version 1)"},
		{"qed", "", "QEMU image (QED)"},
		{"vmdk", "", "VMware image (VMDK)"},
		{"vmdk", "subformat=monolithicFlat", "VMware image (VMDK descriptor)"},
		{"vdi", "", "VirtualBox image (VDI)"},
		{"vpc", "", "Virtual PC image (VHD)"},
		{"vpc", "subformat=fixed", "Virtual PC image (VHD of fixed size)"},
		{"vhdx", "", "Hyper-V image (VHDX)"},
		{"parallels", "", "Parallels image"},
	} {
		t.Run(c.format+" "+c.options, func(t *testing.T) {
			m := newMachine(t)
			args := []string{"create", "-q", "-f", c.format}
			if c.options != "" {
				args = append(args, "-o", c.options)
			}
			out, err := exec.CommandContext(t.Context(), program, append(args, m.path("disk.img"), "8M")...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			refuseForeign(t, m, "disk.img", c.found)
		})
	}
}

// TestRawWithoutStructure: what has no structure is raw with a warning, what has one or is blank without.
func TestRawWithoutStructure(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT volume")
	m.do("create -size 8m -fs ExFAT -layout NONE bare")
	for name, content := range map[string]string{"text.img": strings.Repeat("No image, but a text.\n", 1024)[:16384], "blank.img": strings.Repeat("\x00", 16384)} {
		m.write(name, content)
	}
	for name, warned := range map[string]bool{"text.img": true, "blank.img": false, "volume.dmg": false, "bare.dmg": false} {
		for _, line := range []string{"imageinfo ", "attach -nomount ", "convert -ov -format UDTO -o out "} {
			m.do(line + name)
			assert.Equal(t, warned, strings.Contains(m.err, `WARNING: "`+name+`" has no partition map and no known file system`), "%s%s: %s", line, name, m.err)
		}
	}
	m.do("imageinfo -srcimagekey diskimage-class=CRawDiskImage text.img")
	assert.Empty(t, m.err)
}
