package udif

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/interoptest"
)

// devices are what the other programs are shown, by name: partitioned in every way.
func devices(t testing.TB) map[string][]byte {
	whole := content(3<<20, 21)
	copy(whole[1024:], "H+")
	guid := gpt.GUID{0x11, 0x22, 15: 0x55}
	gptDevice := content(3<<20, 22)
	clear(gptDevice[:40*SectorSize])
	memory := blockdevtest.NewMem(int64(len(gptDevice)))
	_, err := memory.WriteAt(gptDevice, 0)
	require.NoError(t, err)
	table, err := gpt.Single(int64(len(gptDevice)), guid, gpt.AppleHFS, guid, "disk <image> & more", gpt.FirstApple)
	require.NoError(t, err)
	require.NoError(t, gpt.Write(memory, table))
	_, err = memory.ReadAt(gptDevice, 0)
	require.NoError(t, err)
	mbr := content(2<<20, 23)
	clear(mbr[:SectorSize])
	copy(mbr[446:], []byte{0, 0, 0, 0, 0x0E, 0, 0, 0, 63, 0, 0, 0, 0xB8, 0x0B, 0, 0})
	mbr[510], mbr[511] = 0x55, 0xAA
	apm := mapped(512, 1)
	// Boot code in the sector of the driver descriptor map, as hybrid CDs for two kinds of machines have it.
	both := mapped(512, 1)
	copy(both[446:], mbr[446:512])
	return map[string][]byte{"whole": whole, "gpt": gptDevice, "mbr": mbr, "apm": apm, "apm and mbr": both,
		"apm of a CD": mapped(2048, 4), "apm of a hybrid": mapped(2048, 1)}
}

// mapped is a device with an Apple partition map: the block size that its first sector says, and the sectors of a block in
// which the map counts.
func mapped(says uint16, unit int) []byte {
	device := content(2<<20, 24)
	clear(device[:4*unit*SectorSize])
	copy(device, "ER")
	binary.BigEndian.PutUint16(device[2:], says)
	for i, p := range []struct {
		name, typ    string
		first, count int
	}{{"Apple", "Apple_partition_map", unit, 64 - unit}, {"disk image", "Apple_HFS", 64, 4000}, {"", "Apple_Free", 4064, 32}} {
		b := device[(i+1)*unit*SectorSize:]
		copy(b, "PM")
		binary.BigEndian.PutUint32(b[4:], 3)
		binary.BigEndian.PutUint32(b[8:], uint32(p.first/unit))
		binary.BigEndian.PutUint32(b[12:], uint32(p.count/unit))
		copy(b[16:48], p.name)
		copy(b[48:80], p.typ)
	}
	return device
}

func TestProbeLayout(t *testing.T) {
	want := map[string][]string{
		"whole": {"0 fffffffe whole disk (Apple_HFS : 0)"},
		"gpt": {"-1 0 Protective Master Boot Record (MBR : 0)", "0 1 GPT Header (Primary GPT Header : 1)",
			"1 2 GPT Partition Data (Primary GPT Table : 2)", "2 3  (Apple_Free : 3)", "3 4 disk <image> & more (Apple_HFS : 4)",
			"4 5  (Apple_Free : 5)", "5 6 GPT Partition Data (Backup GPT Table : 6)", "6 7 GPT Header (Backup GPT Header : 7)"},
		"mbr": {"-1 0 Master Boot Record (MBR : 0)", "0 1  (Apple_Free : 1)", "1 2  (Windows_FAT_16 : 2)", "2 3  (Apple_Free : 3)"},
		"apm": {"-1 ffffffff Driver Descriptor Map (DDM : 0)", "0 0 Apple (Apple_partition_map : 1)",
			"1 1 disk image (Apple_HFS : 2)", "2 2  (Apple_Free : 3)"},
	}
	for _, other := range []string{"apm and mbr", "apm of a CD", "apm of a hybrid"} {
		want[other] = want["apm"]
	}
	for name, device := range devices(t) {
		t.Run(name, func(t *testing.T) {
			layout, err := ProbeLayout(bytes.NewReader(device), int64(len(device)))
			require.NoError(t, err)
			at := uint64(0)
			for _, g := range layout.Regions() {
				assert.Equal(t, at, g.First)
				at += g.Sectors
			}
			assert.EqualValues(t, len(device)/SectorSize, at)
			var got []string
			for _, g := range layout.Regions() {
				got = append(got, fmt.Sprintf("%d %x %s", g.ID, g.Descriptor, g.Name))
				if strings.Contains(g.Name, "Apple_HFS") && strings.HasPrefix(name, "apm") {
					assert.Equal(t, [2]uint64{64, 4000}, [2]uint64{g.First, g.Sectors})
				}
			}
			assert.Equal(t, want[name], got)
			damaged := bytes.Clone(device)
			copy(damaged, bytes.Repeat([]byte{0xE5}, 2*SectorSize))
			layout, err = ProbeLayout(bytes.NewReader(damaged), int64(len(damaged)))
			require.NoError(t, err)
			assert.Len(t, layout.Regions(), 1)
		})
	}
}

// Test7Zip lets 7-Zip check the checksums of what we write, and puts the device together from the parts it extracts.
func Test7Zip(t *testing.T) {
	interoptest.Tool(t, "7zz")
	for name, device := range devices(t) {
		for _, format := range written {
			if name != "gpt" && format != UDZO {
				continue // a format is the same in every layout
			}
			t.Run(name+" "+string(format), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "image.dmg")
				require.NoError(t, os.WriteFile(path, write(t, device, WriteOptions{Format: format}), 0o600))
				assert.Contains(t, interoptest.Run(t, "7zz", "t", "-tdmg", path), "Everything is Ok")
				interoptest.Run(t, "7zz", "x", "-tdmg", "-o"+filepath.Join(dir, "parts"), path)
				requireSame(t, device, concatenate(t, filepath.Join(dir, "parts")))
			})
		}
	}
}

// concatenate joins the parts of a device, which 7-Zip numbers.
func concatenate(t *testing.T, dir string) []byte {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	parts := map[int][]byte{}
	for _, entry := range entries {
		number, _, _ := strings.Cut(entry.Name(), ".")
		n, err := strconv.Atoi(number)
		if len(entries) == 1 {
			n, err = 0, nil
		}
		require.NoError(t, err, entry.Name())
		parts[n], err = os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
	}
	var device []byte
	for n := range len(parts) {
		require.Contains(t, parts, n)
		device = append(device, parts[n]...)
	}
	return device
}

// TestQEMU lets QEMU decode what it has codecs for.
func TestQEMU(t *testing.T) {
	interoptest.Tool(t, "qemu-img")
	for name, device := range devices(t) {
		for _, format := range []Format{UDRO, UDZO} {
			if name != "gpt" && format != UDZO {
				continue
			}
			t.Run(name+" "+string(format), func(t *testing.T) {
				dir := t.TempDir()
				path, raw := filepath.Join(dir, "image.dmg"), filepath.Join(dir, "raw")
				require.NoError(t, os.WriteFile(path, write(t, device, WriteOptions{Format: format}), 0o600))
				interoptest.Run(t, "qemu-img", "convert", "-f", "dmg", "-O", "raw", path, raw)
				got, err := os.ReadFile(raw)
				require.NoError(t, err)
				requireSame(t, device, got)
			})
		}
	}
}
