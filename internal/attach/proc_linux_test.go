package attach

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseMounts(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
35 22 0:39 / /run/a\040b\134c rw,nosuid shared:5 master:1 - fuse.dmgbench dmgbench:x\011y rw,user_id=0
not a line
36 22 x:1 / /no rw - tmpfs tmpfs rw
`
	assert.Equal(t, []mount{
		{254, 0, "/", "ext4", "/dev/vda"},
		{0, 39, `/run/a b\c`, "fuse.dmgbench", "dmgbench:x\ty"},
	}, parseMounts(table))
	list, err := mounts()
	require.NoError(t, err)
	assert.NotEmpty(t, list)
}

func FuzzParseMounts(f *testing.F) {
	f.Add("22 1 254:0 / /a\\040 rw - ext4 /dev/vda rw\n")
	f.Fuzz(func(t *testing.T, table string) {
		if got := parseMounts(table); len(got) > strings.Count(table, "\n")+1 {
			t.Fatalf("%d mounts of %q", len(got), table)
		}
	})
}

func TestProcessStart(t *testing.T) {
	start, ok := processStart(os.Getpid())
	assert.True(t, ok)
	assert.Positive(t, start)
	_, ok = processStart(1 << 30)
	assert.False(t, ok)
}

func TestFolderName(t *testing.T) {
	tests := map[string]string{
		"Plain": "Plain", "a/b\x00c": "a_b_c", "..": "", ".hidden": "hidden", "  blanks ": "blanks", "\xff": "_",
		strings.Repeat("ä", 300): strings.Repeat("ä", 100),
	}
	for label, want := range tests {
		assert.Equal(t, want, folderName(label), "%q", label)
	}
}

func TestBusyErrorNamesHolders(t *testing.T) {
	err := &BusyError{What: "/x", Holders: []Holder{{7, "vim"}, {9, "less"}}}
	assert.Equal(t, `"/x" is busy: held by vim (process 7), less (process 9)`, err.Error())
	assert.Equal(t, `"/x" is busy`, (&BusyError{What: "/x"}).Error())
}
