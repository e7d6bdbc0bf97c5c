package imagetool

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/linuxhdiutil/attach"
)

func TestAttachText(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a")
	const mounted = "/dev/loop0          \tGUID_partition_scheme          \t\n/dev/loop0p1        \tMicrosoft Basic Data           \t/run/media/dmgbench/untitled\n"
	assert.Equal(t, mounted, m.do("attach a.dmg"))
	assert.Equal(t, mounted, m.do("mount a.dmg -nobrowse -noverify"), "what is attached already is printed again")
	assert.Len(t, m.at.attached, 1)
	assert.Equal(t, "\"/run/media/dmgbench/untitled\" unmounted successfully.\n", m.do("unmount /run/media/dmgbench/untitled"))
	m.refused(1, "hdiutil: unmount failed - loop0 is not mounted", "unmount loop0")
	assert.Equal(t, mounted, m.do("mountvol loop0p1"))
	assert.Equal(t, "\"loop0\" ejected.\n", m.do("detach /dev/loop0p1"))
	m.refused(1, "hdiutil: detach failed - No such file or directory\n", "detach /dev/loop0")
	assert.Equal(t, "/dev/loop1\n/dev/loop1p1\n", m.do("diskutil image attach --noMount a.dmg"))
	assert.Equal(t, "Disk /dev/loop1 ejected\n", m.do("diskutil eject loop1"))
	m.refused(1, "Error: Failed to eject: No such file or directory\n", "diskutil eject loop1")
}

// TestAttachedAlready: what is there is told, and what it is not of what was asked for.
func TestAttachedAlready(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a")
	require.NoError(t, os.Mkdir(m.path("point"), 0o700))
	m.do("attach -readonly a.dmg")
	for _, line := range []string{"attach a.dmg", "attach -readonly a.dmg", "attach -nomount a.dmg"} {
		m.do(line)
		assert.Empty(t, m.err, line)
	}
	require.NoError(t, os.Symlink("a.dmg", m.path("link.dmg")))
	assert.Contains(t, m.do("attach link.dmg"), "/dev/loop0p1", "links are followed")
	assert.Len(t, m.at.requests, 1)
	m.do("attach -readwrite -mountpoint point a.dmg")
	assert.Equal(t, "hdiutil: attach: WARNING: it is attached already, read-only: detach it first\n"+
		"hdiutil: attach: WARNING: it is attached already, and mounted on \"/run/media/dmgbench/untitled\": detach it first\n", m.err)
	assert.Len(t, m.at.attached, 1)

	m.do("create -size 8m b")
	m.do("detach loop0")
	m.do("attach a.dmg")
	m.do("attach -readonly a.dmg")
	assert.Equal(t, "hdiutil: attach: WARNING: it is attached already, and can be written to: detach it first\n", m.err)
	m.do("diskutil image attach --readOnly a.dmg")
	assert.Equal(t, "diskutil: attach: WARNING: it is attached already, and can be written to: detach it first\n", m.err)
	m.do("detach loop1")
	m.do("attach -mountpoint point a.dmg")
	m.refused(1, "hdiutil: attach failed - Resource busy: the volume of \"DIR/a.dmg\" is mounted on \"DIR/point\"\n", "attach -mountpoint point b.dmg")
	m.do("attach -nomount b.dmg")
	m.refused(1, "Resource busy: the volume of", "mountvol -mountpoint point loop3")
	assert.Len(t, m.at.attached, 2)
}

func TestAttachAsksForWhatIsMeant(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -layout NONE -fs ExFAT a")
	for _, dir := range []string{"point", "root"} {
		require.NoError(t, os.Mkdir(m.path(dir), 0o700))
	}
	for _, test := range []struct {
		line string
		want attach.Request
	}{
		{"attach a.dmg", attach.Request{}},
		{"attach -readonly -nomount a.dmg -nobrowse", attach.Request{ReadOnly: true, NoMount: true}},
		{"attach -kernel a.dmg", attach.Request{ServedBy: "kernel"}},
		{"attach a.dmg -noKernel", attach.Request{ServedBy: "helper"}},
		{"attach -mount suppressed a.dmg", attach.Request{NoMount: true}},
		{"attach -mountpoint point a.dmg", attach.Request{MountPoint: m.path("point")}},
		{"attach -mountpoint missing a.dmg", attach.Request{MountPoint: m.path("missing")}},
		{"attach -mountRandom root -NOBROWSE a.dmg", attach.Request{MountRoot: m.path("root"), RandomName: true}},
		{"attach -mountroot root a.dmg -owners on", attach.Request{MountRoot: m.path("root")}},
		{"attach -plist -owners off -noverify -mountpoint point a.dmg", attach.Request{MountPoint: m.path("point")}},
		{"diskutil image attach --plist --nobrowse --noMount a.dmg", attach.Request{NoMount: true}},
		{"diskutil image attach --readOnly --mountPoint point a.dmg", attach.Request{ReadOnly: true, MountPoint: m.path("point")}},
		{"diskutil image attach --mountOptions nobrowse,rdonly --mountPoint=made a.dmg", attach.Request{ReadOnly: true, MountPoint: m.path("made")}},
		{"diskutil image attach --mountPolicy noMount a.dmg", attach.Request{NoMount: true}},
	} {
		m.at.requests = nil
		m.do(test.line)
		test.want.Image = m.path("a.dmg")
		require.Len(t, m.at.requests, 1, test.line)
		assert.NotNil(t, m.at.requests[0].Info, "%s: the image is opened once", test.line)
		m.at.requests[0].Info = nil
		assert.Equal(t, test.want, m.at.requests[0], test.line)
		m.do("detach " + m.at.attached[0].Device)
	}

}

func TestAttachRefuses(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a")
	m.write("text.txt", "no image")
	m.write("udif.dmg", string(append(make([]byte, 512), append([]byte("koly"), make([]byte, 508)...)...)))
	m.write("asif.dmg", "shdw"+string(make([]byte, 508)))
	m.write("folder.sparsebundle/x", "")
	for _, test := range []struct{ words, line string }{
		{"hdiutil: attach failed - No such file or directory\n", "attach b.dmg"},
		{"hdiutil: attach failed - image not recognized\n", "attach text.txt"},
		{"both -kernel and -nokernel", "attach a.dmg -kernel -nokernel"},
		{"hdiutil: attach failed - image not recognized\n", "attach folder.sparsebundle"},
		{"hdiutil: attach failed - image not recognized\n", "attach ."},
		{"hdiutil: attach failed - ", "attach asif.dmg"},
		{"hdiutil: attach failed - ", "attach udif.dmg"},
		{"option -shadow: shadow files are not supported", "attach -shadow a.dmg"},
		{"ram images are not supported", "attach -nomount ram://2048"},
		{"http images are not supported", "attach http://example.org/x.dmg"},
		{"both -readonly and -readwrite", "attach -readonly -readwrite a.dmg"},
		{"a place to mount, and no mounting", "attach -nomount -mountpoint . a.dmg"},
		{"both -mountpoint and -mountroot", "attach -mountpoint . -mountroot . a.dmg"},
		{"hdiutil: attach failed - No such file or directory\n", "attach -mountpoint nowhere/point a.dmg"},
		{`option -owners: "perhaps" is none of on, off`, "attach -owners perhaps a.dmg"},
		{`image key "diskimage-class=CUDIFDiskImage"`, "attach -imagekey diskimage-class=CUDIFDiskImage a.dmg"},
		{"a place to mount, and no mounting", "diskutil image attach --noMount --mountPoint . a.dmg"},
		{`mount option "async" is not known`, "diskutil image attach --mountOptions async a.dmg"},
	} {
		m.refused(1, test.words, test.line)
		assert.Empty(t, m.out, test.line)
	}
	assert.Empty(t, m.at.calls)
	m.do("attach -imagekey diskimage-class=CRawDiskImage a.dmg")
}

// A volume that the kernel has no driver for is refused with another way to read it.
func TestAttachWithoutADriverSaysWhatReadsTheVolume(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -layout NONE a")
	for fs, hint := range map[string]string{
		"apfs":    "hdiutil: attach: hint: attach it with -nomount, then fsapfsmount -f 1 PARTITION FOLDER ",
		"hfsplus": "hdiutil: attach: hint: attach it with -nomount, then 7zz l PARTITION ",
	} {
		m.at.fail["Attach"] = &attach.NoDriverError{Filesystem: fs}
		m.refused(1, "hdiutil: attach failed - no mountable file systems\n", "attach a.dmg")
		assert.Contains(t, m.err, "the volume is "+fs+", and the kernel has no driver for it")
		assert.Contains(t, m.err, hint)
		m.refused(1, strings.NewReplacer("hdiutil: attach:", "diskutil: attach:", "-nomount", "--noMount").Replace(hint), "diskutil image attach a.dmg")
	}
	m.at.fail["Attach"] = &attach.NoDriverError{Filesystem: "xfs"}
	m.refused(1, "the kernel has no driver", "attach a.dmg")
	assert.NotContains(t, m.err, "hint")
}

func TestAttachWithoutAFileSystem(t *testing.T) {
	m := newMachine(t)
	m.at.fsOn = "-"
	m.do("create -size 8m -layout NONE a")
	m.refused(1, "hdiutil: attach failed - no mountable file systems\n", "attach a.dmg")
	assert.Empty(t, m.at.attached)
	m.do("attach -mount optional a.dmg")
	m.do("detach loop0")
	m.do("diskutil image attach --mountPolicy autoMount a.dmg")
	m.do("detach loop1")
	m.refused(1, "could not be attached: no mountable file systems", "create -size 8m -layout NONE b -attach")
	assert.FileExists(t, m.path("b.dmg"))
}

func TestDetachSaysWhatHoldsIt(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a -attach")
	m.at.fail["Detach"] = fmt.Errorf("unmounting: %w", syscall.EBUSY)
	m.at.fail["Unmount"] = m.at.fail["Detach"]
	m.refused(16, "hdiutil: couldn't unmount \"loop0\" - Resource busy\n", "detach loop0")
	m.refused(16, "hdiutil: couldn't unmount \"loop0\" - Resource busy\n", "unmount loop0")
	m.refused(1, "Error: Failed to eject: Resource busy\n", "diskutil eject loop0")
	m.refused(16, "unmounting: ", "detach -verbose loop0")
	require.Equal(t, 16, m.run("detach", "-quiet", "loop0"))
	assert.Empty(t, m.out+m.err)
	m.at.lost = []string{"2 files that were open"}
	assert.Equal(t, "\"loop0\" ejected.\n", m.do("detach loop0 -force"))
	assert.Equal(t, "hdiutil: detach: lost: 2 files that were open\n", m.err)

	m.do("create -size 8m b -attach")
	m.at.fail = map[string]error{}
	m.at.lost = []string{"no space left", "no space left"}
	require.Equal(t, 1, m.run("detach", "loop1"), "nobody asked for force")
	assert.Equal(t, "hdiutil: detach: lost: no space left\nhdiutil: detach: \"loop1\" is detached, but some writes were lost\n", m.err)
}

func TestInfoTellsOfTheDead(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a -attach")
	m.at.attached[0].Dead = true
	assert.Contains(t, m.do("info"), "lost            : the process that served /dev/loop0 died")
	m.do("info -plist")
	assert.Regexp(t, `<key>images</key>\s*<array>\s*</array>`, m.out)
	assert.Contains(t, m.out, "<key>dmgbench-lost</key>")
	m.refused(1, "No such file or directory", "detach loop0")
	m.refused(1, "lost: \"DIR/a.dmg\": the process that served /dev/loop0 died", "detach loop0")
	m.do("attach a.dmg")
	assert.Contains(t, m.err, "the process that served /dev/loop0 died", "attaching it again does not hide it")
}

// TestRootFollowsNoLinkOfAnotherUser: it would open, or mount on, what only root may.
func TestRootFollowsNoLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes links of other users")
	}
	m := newMachine(t)
	m.do("create -size 8m a")
	require.NoError(t, os.Mkdir(m.path("point"), 0o700))
	for _, link := range [][2]string{{"a.dmg", "ln.dmg"}, {"point", "ln"}} {
		require.NoError(t, os.Symlink(link[0], m.path(link[1])))
		require.NoError(t, os.Lchown(m.path(link[1]), 1234, 1234))
	}
	for _, line := range []string{"attach ln.dmg", "imageinfo ln.dmg", "attach a.dmg -mountpoint ln", "attach a.dmg -mountroot ln"} {
		m.refused(1, "is a link of another user, which root does not follow", line)
	}
	require.NoError(t, os.Lchown(m.path("ln"), 0, 0))
	m.do("attach a.dmg -mountpoint ln")
	assert.Equal(t, m.path("point"), m.at.requests[len(m.at.requests)-1].MountPoint)
}
