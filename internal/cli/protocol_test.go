package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

func shownProtocol(t *testing.T, text string) string {
	t.Helper()
	p, problems := plan.Parse("x", []byte(text))
	require.NotNil(t, p, "%v", problems)
	var b bytes.Buffer
	require.NoError(t, printProtocol(&b, p, protocolWidth))
	return b.String()
}

// What a step is for is told apart from what all cases do, before it and behind it.
func TestProtocolOfParts(t *testing.T) {
	text := shownProtocol(t, `schema = 1
title = "Parts"
[image]
format = "UDSB"
size   = "1 GB"
encryption = "AES-256"
band_size = "16 MiB"
[io]
sync = "full"
cache = "cold"
[[case]]
workers = 1
[[case]]
workers = 4
block = "1 MiB"
[files.few]
sizes = ["1 MB", "2 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }]
[[protocol]]
when  = { workers = 4 }
steps = [{ do = "read", phase = "new" }]
[[protocol]]
steps = [{ do = "detach" }]
[[fit]]
name = "line"
quantity = "write_time"
where = { phase = "new" }
along = "file_size"
model = "line"
`)
	for _, want := range []string{
		"\n  one where workers is 1\n  one where workers is 4, block is 1 MiB\n", "image, by default: UDSB, 1 GB, AES-256, bands of 16 MiB,",
		"  timed: one file at a time, each in one call, each write flushed to the medium,\n         through the cache, from which files are evicted before they are read\n",
		"  Only where workers is 4:\n   4. Read the files that were written last, each timed (new).\n\n  In all cases again:\n   5. Unmount and detach the image.\n",
		"\nFITTED\n  - line: a straight line of write time over file size, where phase is new\n",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "compressed:")
}

// A plan without images speaks of none.
func TestProtocolOfFolders(t *testing.T) {
	text := shownProtocol(t, `schema = 1
title = "Folders"
[target]
kind = "directory"
[stream]
level = 3
[matrix]
threads = [1, 2]
[inputs.big]
about = "any file"
size = "1 GB"
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "copy", from = "big", to = "a" }, { do = "stream", from = "a", to = "b" }, { do = "measure", phase = "end" }, { do = "detach" }]
`)
	assert.Contains(t, text, "\n  in a native folder, without an image\n")
	assert.Contains(t, text, "\n  compressed: by zstd, at level 3\n", "the threads are an axis")
	assert.Contains(t, text, "\n   1. Make the folder.\n   2. Open the folder.\n")
	assert.Contains(t, text, "Note the size on disk of the folder")
	assert.Contains(t, text, "Leave the folder.\n")
	assert.NotContains(t, text, "the image\n")
	assert.NotContains(t, text, "timed:")
}
