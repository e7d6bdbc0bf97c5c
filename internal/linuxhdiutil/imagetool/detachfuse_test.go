package imagetool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/linuxhdiutil/attach"
)

// TestDetachFindsAFUSEAttachment names an image without a loop device in all the ways that attach and info print.
func TestDetachFindsAFUSEAttachment(t *testing.T) {
	for _, operand := range []string{"fuse4711", "/dev/fuse4711", "/dev/fuse4711p1", "/run/dmgbench/attach/1/image",
		"/run/dmgbench/attach/1/p1", "/run/media/dmgbench/untitled"} {
		m := newMachine(t)
		m.do("create -size 8m a")
		m.do("attach a.dmg")
		require.Len(t, m.at.attached, 1)
		a := &m.at.attached[0]
		a.Mode, a.Device, a.Partition = attach.ModeFUSE, "/run/dmgbench/attach/1/image", "/run/dmgbench/attach/1/p1"
		m.refused(1, "detach failed - No such file or directory\n", "detach fuse4712")
		assert.Equal(t, "\"fuse4711\" ejected.\n", m.do("detach "+operand), operand)
		assert.Empty(t, m.at.attached, operand)
	}
}
