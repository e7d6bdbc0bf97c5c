package hostio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const somebody, another = 54321, 54322

func ownerOf(t *testing.T, path string) int {
	t.Helper()
	fi, err := os.Lstat(path)
	require.NoError(t, err)
	return StatOf(fi).UID
}

// What root made is given away; what others own or put there, and what links lead to, is not.
func TestGive(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root gives files away")
	}
	base := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	require.NoError(t, os.MkdirAll(at("run", "below"), 0o755))
	for _, name := range []string{"outside", "linked", "run/file", "run/theirs", "run/below/deep"} {
		require.NoError(t, os.WriteFile(at(name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Lchown(at("run", "theirs"), another, another))
	require.NoError(t, os.Symlink(at("outside"), at("run", "link")))
	require.NoError(t, os.Link(at("linked"), at("run", "second name")))
	require.NoError(t, os.Symlink("run", at("alias")))

	require.NoError(t, ChownTree(at("run"), somebody, somebody))
	assert.Zero(t, ownerOf(t, at("run")), "in a folder that is not the user's")
	require.NoError(t, os.Chown(base, somebody, somebody))
	require.NoError(t, ChownTree(at("alias"), somebody, somebody))
	assert.Zero(t, ownerOf(t, at("run", "file")), "a link is not followed")
	require.NoError(t, ChownTree(at("run"), somebody, somebody))
	for name, want := range map[string]int{"run": somebody, "run/file": somebody, "run/below": somebody, "run/below/deep": somebody,
		"run/theirs": another, "run/link": 0, "outside": 0, "linked": 0, "run/second name": 0} {
		assert.Equal(t, want, ownerOf(t, at(name)), name)
	}
	require.NoError(t, ChownTree(at("outside"), somebody, somebody))
	assert.Equal(t, somebody, ownerOf(t, at("outside")), "a file alone")
	require.NoError(t, ChownTree(at("nothing"), somebody, somebody))
	require.NoError(t, ChownTree(at("nothing", "below"), somebody, somebody))
	require.ErrorContains(t, ChownTree(at("outside", "below"), somebody, somebody), "changing the owner", "below a file")
	require.ErrorContains(t, ChownTree(at(strings.Repeat("x", 300)), somebody, somebody), "file name too long")
}
