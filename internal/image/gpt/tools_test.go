package gpt

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
)

// tool skips the test when the program is missing; DMGBENCH_REQUIRE_TOOLS=1 makes that a failure.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("DMGBENCH_REQUIRE_TOOLS") == "1" {
		t.Fatalf("%s is required: %v", name, err)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// fileDevice is the least that this package needs of a device, over an image file.
type fileDevice struct {
	*os.File
	size int64
}

func (d fileDevice) Discard(off, n int64) error { return nil }
func (d fileDevice) Flush() error               { return nil }
func (d fileDevice) Size() int64                { return d.size }

var _ blockdev.Device = fileDevice{}

func imageFile(t *testing.T, size int64) fileDevice {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "gpt.img"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	t.Cleanup(func() { f.Close() })
	return fileDevice{f, size}
}

func TestSgdiskAcceptsOurTable(t *testing.T) {
	sgdisk := tool(t, "sgdisk")
	for _, first := range []uint64{FirstDefault, FirstApple} {
		dev := imageFile(t, 64<<20)
		table, err := Single(dev.size, diskID, BasicData, partID, "disk image", first)
		require.NoError(t, err)
		require.NoError(t, Write(dev, table))
		out, err := exec.Command(sgdisk, "-v", dev.Name()).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "No problems found")
		out, err = exec.Command(sgdisk, "-p", "-i", "1", dev.Name()).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), diskID.String())
		out, err = exec.Command(sgdisk, "-i", "1", dev.Name()).CombinedOutput()
		require.NoError(t, err, string(out))
		for _, want := range []string{BasicData.String(), partID.String(), "'disk image'"} {
			assert.Contains(t, string(out), want)
		}
		require.NoError(t, os.Truncate(dev.Name(), 80<<20))
		dev.size = 80 << 20
		_, err = Resize(dev, dev.size, 0)
		require.NoError(t, err)
		out, err = exec.Command(sgdisk, "-v", dev.Name()).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "No problems found")
	}
}

func TestReadsTableOfSgdisk(t *testing.T) {
	sgdisk := tool(t, "sgdisk")
	dev := imageFile(t, 64<<20)
	out, err := exec.Command(sgdisk, "-U", diskID.String(), "-n", "1:2048:+8M", "-t", "1:0700", "-n", "3:0:+4M", "-t", "3:8300", "-c", "3:third", dev.Name()).CombinedOutput()
	require.NoError(t, err, string(out))
	table, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	require.Len(t, table.Partitions, 2)
	assert.Equal(t, diskID, table.Disk)
	assert.Equal(t, BasicData, table.Partitions[0].Type)
	assert.Equal(t, Partition{Index: 2, Type: LinuxData, ID: table.Partitions[1].ID, First: 18432, Last: 26623, Name: "third"}, table.Partitions[1])
}

func TestSfdiskVerifies(t *testing.T) {
	sfdisk := tool(t, "sfdisk")
	dev := imageFile(t, 32<<20)
	table, err := Single(dev.size, diskID, BasicData, partID, "disk image", 0)
	require.NoError(t, err)
	require.NoError(t, Write(dev, table))
	out, err := exec.Command(sfdisk, "--verify", dev.Name()).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "No errors detected")
}
