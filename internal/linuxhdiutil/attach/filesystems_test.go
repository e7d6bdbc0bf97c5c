package attach

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

// TestIdentifyWhatToolsMake formats files with the tools that there are, and recognises type and label.
func TestIdentifyWhatToolsMake(t *testing.T) {
	tests := []struct {
		kernel, label string
		apple         string
		size          int64
		tool          string
		args          []string
	}{
		{"ext4", "Länge sechzehn!", "ext4", 8 << 20, "mkfs.ext4", []string{"-q", "-F", "-L", "Länge sechzehn!"}},
		{"ext4", "", "ext4", 8 << 20, "mkfs.ext4", []string{"-q", "-F"}},
		{"xfs", "twelve bytes", "xfs", 320 << 20, "mkfs.xfs", []string{"-q", "-L", "twelve bytes"}},
		{"btrfs", "a label of butter", "btrfs", 128 << 20, "mkfs.btrfs", []string{"-q", "-L", "a label of butter"}},
		{"vfat", "MY VOLUME", "MS-DOS FAT32", 64 << 20, "mkfs.vfat", []string{"-F", "32", "-n", "MY VOLUME"}},
		{"vfat", "", "MS-DOS FAT16", 32 << 20, "mkfs.vfat", []string{"-F", "16"}},
		{"exfat", "", "ExFAT", 8 << 20, "mkfs.exfat", nil},
	}
	for _, test := range tests {
		t.Run(test.kernel+" "+test.label, func(t *testing.T) {
			path := findTool(test.tool)
			if path == "" {
				t.Skipf("%s is not installed", test.tool)
			}
			image := filepath.Join(t.TempDir(), "image")
			require.NoError(t, os.WriteFile(image, nil, 0o600))
			require.NoError(t, os.Truncate(image, test.size))
			out, err := exec.Command(path, append(test.args, image)...).CombinedOutput()
			require.NoError(t, err, string(out))
			f, err := os.Open(image)
			require.NoError(t, err)
			defer f.Close()
			v, err := Identify(blockdev.ReadOnly(f, test.size))
			require.NoError(t, err)
			assert.Equal(t, [3]string{test.kernel, test.label, test.apple}, [3]string{v.Kernel, v.Label, v.AppleName})
		})
	}
}

func TestIdentifyZeros(t *testing.T) {
	for _, n := range []int{0, 100, 1535, 1536, 4096, 200 << 10} {
		v, err := Identify(blockdevtest.NewMem(int64(n)))
		require.NoError(t, err)
		assert.Empty(t, v.Kernel, "%d zeros", n)
	}
}

// TestInspectDevicesWithoutAGUIDTable: a device is one region, or what a boot record divides it into.
func TestInspectDevicesWithoutAGUIDTable(t *testing.T) {
	dev := blockdevtest.NewMem(1 << 20)
	info, err := Inspect(dev)
	require.NoError(t, err)
	assert.Equal(t, []Region{{Name: "whole disk", Count: 2048, Content: true}}, info.Regions)
	assert.Equal(t, Region{Count: 2048, Content: true}, info.Last())

	record := make([]byte, 512)
	record[446+4] = 7
	binary.LittleEndian.PutUint32(record[446+8:], 64)
	binary.LittleEndian.PutUint32(record[446+12:], 1024)
	record[510], record[511] = 0x55, 0xAA
	_, err = dev.WriteAt(record, 0)
	require.NoError(t, err)
	info, err = Inspect(dev)
	require.NoError(t, err)
	assert.Equal(t, "fdisk", info.Scheme)
	content := [][2]int64{}
	for _, r := range info.Regions {
		if r.Content {
			content = append(content, [2]int64{r.First, r.Count})
		}
	}
	assert.Equal(t, [][2]int64{{64, 1024}}, content)
}

func FuzzIdentify(f *testing.F) {
	f.Add([]byte("XFSB"), 0)
	f.Add([]byte("\x53\xef"), 1024+56)
	f.Add([]byte("_BHRfS_M"), 64<<10+64)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		if at < 0 || at > 100<<10 {
			return
		}
		dev := blockdevtest.NewMem(int64(at + len(data)))
		_, err := dev.WriteAt(data, int64(at))
		require.NoError(t, err)
		got, err := Identify(dev)
		require.NoError(t, err)
		if !utf8.ValidString(got.Label) || strings.ContainsRune(got.Label, 0) {
			t.Fatalf("label %q", got.Label)
		}
	})
}

func TestCut(t *testing.T) {
	tests := []struct {
		label string
		n     int
		want  string
	}{
		{"short", 16, "short"},
		{"äöü", 5, "äö"},
		{"a😀b", 4, "a"},
		{"a😀b", 5, "a😀"},
		{"", 0, ""},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, cut(test.label, test.n), "%q to %d", test.label, test.n)
	}
}

func TestFilesystems(t *testing.T) {
	names := map[string]string{"EXT4": "ext4", "ms-dos fat32": "FAT32", "vfat": "FAT32", "exfat": "ExFAT", "hfs+": "HFS+"}
	for asked, want := range names {
		fs, ok := FilesystemOf(asked)
		require.True(t, ok, asked)
		assert.Equal(t, want, fs.Name)
	}
	_, ok := FilesystemOf("APFS")
	assert.False(t, ok)
	for _, fs := range Filesystems() {
		assert.True(t, fs.Present || fs.Package != "", "%s: what is missing has a package", fs.Name)
	}
}

// TestMissingTool names the package of what is not there.
func TestMissingTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	folders := toolFolders
	t.Cleanup(func() { toolFolders = folders })
	toolFolders = nil
	err := Make(context.Background(), "/nowhere", "HFS+", "x")
	require.Error(t, err)
	if strings.Contains(err.Error(), "on darwin") {
		return
	}
	assert.ErrorContains(t, err, "hfsprogs")
	assert.ErrorContains(t, Make(context.Background(), "/nowhere", "APFS", "x"), "APFS")
}
