package host

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseMounts(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
35 22 0:39 / /run/a\040b\134c ro,nosuid shared:5 master:1 - fuse.dmgbench dmgbench:x\011y rw,user_id=0
not a line
36 22 x:1 / /no rw - tmpfs tmpfs rw
`
	assert.Equal(t, []Mount{
		{Major: 254, Minor: 0, Point: "/", Type: "ext4", Source: "/dev/vda", Options: "rw"},
		{Major: 0, Minor: 39, Point: `/run/a b\c`, Type: "fuse.dmgbench", Source: "dmgbench:x\ty", Options: "rw,user_id=0", ReadOnly: true},
	}, ParseMounts(table))
}

func FuzzParseMounts(f *testing.F) {
	f.Add("22 1 254:0 / /a\\040 rw - ext4 /dev/vda rw\n")
	f.Fuzz(func(t *testing.T, table string) {
		if got := ParseMounts(table); len(got) > strings.Count(table, "\n")+1 {
			t.Fatalf("%d mounts of %q", len(got), table)
		}
	})
}
