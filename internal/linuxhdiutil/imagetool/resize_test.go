package imagetool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestResizeCutsNothingUnknown: partitions of other schemes, and content that nobody knows, stay whole. A blank image has nothing to lose.
func TestResizeCutsNothingUnknown(t *testing.T) {
	m := newMachine(t)
	image := func(put map[int]string) string {
		b := make([]byte, 4<<20)
		for at, s := range put {
			copy(b[at:], s)
		}
		m.write("a.dmg", string(b))
		return "a.dmg"
	}
	mbr := map[int]string{446: "\x00\x02\x03\x00\x07\xff\xff\xff\x01\x00\x00\x00\xff\x0f\x00\x00", 510: "\x55\xaa"} // sectors 1 to 4095
	apm := map[int]string{0: "ER\x02\x00"}
	for i, p := range []string{"\x00\x00\x00\x01\x00\x00\x00\x3f", "\x00\x00\x00\x40\x00\x00\x10\x00", "\x00\x00\x10\x40\x00\x00\x0f\xc0"} {
		kind := []string{"Apple_partition_map", "Apple_HFS", "Apple_Free"}[i]
		apm[(i+1)*sector] = "PM\x00\x00\x00\x00\x00\x03" + p + strings.Repeat("\x00", 32) + kind
	}
	for _, test := range []struct {
		content           map[int]string
		low, lowImageOnly int64
	}{{mbr, 8192, 4096}, {apm, 8192, 0x1040}, {map[int]string{1024: "BD"}, 8192, 1}, {nil, 1, 1}} {
		name := image(test.content)
		low, now, _ := m.limitsOf(name)
		assert.Equal(t, []int64{test.low, 8192}, []int64{low, now}, "%v", test.content)
		low, _, _ = m.limitsOf("-imageonly " + name)
		assert.Equal(t, test.lowImageOnly, low, "%v", test.content)
		if test.low > 1 {
			m.refused(1, "sectors are too few: at least", fmt.Sprintf("resize -sectors %d %s", test.low-1, name))
		}
		m.do("resize -size 5m " + name)
	}
}

// TestTablesWithRoomInFront: sfdisk leaves 1 MiB in front of what its tables call usable. What a table takes is what its
// entries take.
func TestTablesWithRoomInFront(t *testing.T) {
	m := newMachine(t)
	m.do("create -fs ExFAT -size 8m a.dmg")
	limits, pmap := m.do("resize -limits a.dmg"), m.do("pmap a.dmg")
	b, err := os.ReadFile(m.path("a.dmg"))
	require.NoError(t, err)
	for _, at := range []int{sector, len(b) - sector} {
		header := b[at:][:92]
		binary.LittleEndian.PutUint64(header[40:], 2048)
		clear(header[16:20])
		binary.LittleEndian.PutUint32(header[16:], crc32.ChecksumIEEE(header))
	}
	m.write("a.dmg", string(b))
	assert.Equal(t, limits, m.do("resize -limits a.dmg"))
	assert.Equal(t, pmap, m.do("pmap a.dmg"))
}

// TestResizeKeepsTheBackupTable: where the primary table is damaged, the backup is the only one, and found at the end alone.
func TestResizeKeepsTheBackupTable(t *testing.T) {
	for _, size := range []string{"12m", "min"} {
		m := newMachine(t)
		m.do("create -fs ExFAT -volname kept -size 8m a.dmg")
		b, err := os.ReadFile(m.path("a.dmg"))
		require.NoError(t, err)
		clear(b[sector : 2*sector])
		m.write("a.dmg", string(b))
		m.do("resize -size " + size + " a.dmg")
		assert.Contains(t, m.do("imageinfo a.dmg"), "ExFAT: kept", size)
	}
}

// TestResizeOfAStaleBackupTable: a table that is left at the end of what was given a file system as a whole is not put back over it.
func TestResizeOfAStaleBackupTable(t *testing.T) {
	for _, size := range []string{"12m", "min", "8m"} {
		m := newMachine(t)
		m.do("create -fs ExFAT -size 8m a.dmg")
		b, err := os.ReadFile(m.path("a.dmg"))
		require.NoError(t, err)
		copy(b, bytes.Repeat([]byte{0xEB, 0x76, 0x90}, 64<<10))
		m.write("a.dmg", string(b))
		m.refused(1, "only the backup of the partition table", "resize -size "+size+" a.dmg")
		after, err := os.ReadFile(m.path("a.dmg"))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(b, after), size)
	}
}
