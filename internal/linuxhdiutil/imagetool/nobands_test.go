package imagetool

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBundleWithoutBands: an empty folder is what archives and version control lose. Such a bundle is all zeros.
func TestBundleWithoutBands(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 4m -type SPARSEBUNDLE -layout NONE a")
	require.NoError(t, os.RemoveAll(m.path("a.sparsebundle/bands")))
	assert.Contains(t, m.do("imageinfo a.sparsebundle"), "Total Non-Empty Bytes: 0\n")
	m.do("convert a.sparsebundle -format UDTO -o raw")
	got, err := os.ReadFile(m.path("raw.cdr"))
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 4<<20), got)
	assert.NoDirExists(t, m.path("a.sparsebundle/bands"))
}
