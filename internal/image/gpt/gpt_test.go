package gpt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

var (
	diskID = parseGUID("01234567-89AB-CDEF-0123-456789ABCDEF")
	partID = parseGUID("11111111-2222-3333-4444-555555555555")
)

func written(t testing.TB, size int64, first uint64) (*blockdevtest.MemDevice, *Table) {
	t.Helper()
	dev := blockdevtest.NewMem(size)
	table, err := Single(size, diskID, BasicData, partID, "disk image", first)
	require.NoError(t, err)
	require.NoError(t, Write(dev, table))
	return dev, table
}

func flip(t testing.TB, dev blockdev.Device, off int64) {
	t.Helper()
	b := make([]byte, 1)
	_, err := dev.ReadAt(b, off)
	require.NoError(t, err)
	b[0] ^= 0xFF
	_, err = dev.WriteAt(b, off)
	require.NoError(t, err)
}

func TestGUIDTextAndDiskOrder(t *testing.T) {
	assert.Equal(t, []byte{0xA2, 0xA0, 0xD0, 0xEB, 0xE5, 0xB9, 0x33, 0x44, 0x87, 0xC0, 0x68, 0xB6, 0xB7, 0x26, 0x99, 0xC7}, BasicData[:])
	assert.Equal(t, "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", BasicData.String())
	assert.Equal(t, "Apple_APFS", TypeName(AppleAPFS))
	assert.Equal(t, diskID.String(), TypeName(diskID))
	assert.Equal(t, EFISystem.String(), TypeName(EFISystem))
}

func TestSingleRoundTrip(t *testing.T) {
	for _, c := range []struct {
		size     int64
		first    uint64
		wantFrom int64
	}{{64 << 20, 0, 1 << 20}, {64 << 20, FirstApple, 20 << 10}, {1 << 20, 0, 20 << 10}, {100_000_000_000, 0, 1 << 20},
		{4 << 20, 0, 1 << 20}, {4<<20 - 4096, 0, 20 << 10}} {
		dev, table := written(t, c.size, c.first)
		got, warnings, err := Read(dev)
		require.NoError(t, err)
		assert.Empty(t, warnings)
		assert.Equal(t, table, got)
		p := got.Partitions[0]
		assert.Equal(t, c.wantFrom, p.Offset())
		assert.Zero(t, p.Size()%4096)
		assert.LessOrEqual(t, c.size-p.Offset()-p.Size(), int64(40*SectorSize), "as hdiutil: 80 sectors of overhead")
		assert.Equal(t, "disk image", p.Name)
	}
}

func TestWriteSingleGivesThePartitionAsADevice(t *testing.T) {
	dev := blockdevtest.NewMem(8 << 20)
	part, off, err := WriteSingle(dev, diskID, BasicData, partID, 0)
	require.NoError(t, err)
	table, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	require.Len(t, table.Partitions, 1)
	p := table.Partitions[0]
	assert.Equal(t, []int64{p.Offset(), p.Size()}, []int64{off, part.Size()})
	assert.Equal(t, "01234567-89AB-4DEF-8123-456789ABCDEF", table.Disk.String(), "version 4")
	assert.Equal(t, "11111111-2222-4333-8444-555555555555", p.ID.String())
	assert.Equal(t, "disk image", p.Name)

	_, _, err = WriteSingle(blockdevtest.NewMem(8<<10), diskID, BasicData, partID, 0)
	require.ErrorIs(t, err, ErrTooSmall)
	dev.Hook = func(blockdevtest.Op, int64, int64) error { return errors.New("broken disk") }
	_, _, err = WriteSingle(dev, diskID, BasicData, partID, 0)
	require.ErrorContains(t, err, "broken disk")
}

func TestAddRefuses(t *testing.T) {
	table, err := newTable(16<<20, diskID)
	require.NoError(t, err)
	require.NoError(t, table.add(Partition{Type: LinuxData, First: 2048, Last: 4095}))
	require.NoError(t, table.add(Partition{Type: EFISystem, First: 4096, Last: 8191, Name: "Ünïcödé 🎉"}))
	assert.Equal(t, 1, table.Partitions[1].Index)
	for name, p := range map[string]Partition{
		"overlap":      {Type: LinuxData, First: 8191, Last: 9000},
		"inside":       {Type: LinuxData, First: 2048, Last: 2048},
		"no type":      {First: 9000, Last: 9001},
		"backwards":    {Type: LinuxData, First: 9001, Last: 9000},
		"before":       {Type: LinuxData, First: 33, Last: 40},
		"behind":       {Type: LinuxData, First: 9000, Last: table.LastUsable + 1},
		"long name":    {Type: LinuxData, First: 9000, Last: 9001, Name: "1234567890123456789012345678901234567"},
		"broken UTF-8": {Type: LinuxData, First: 9000, Last: 9001, Name: "a\xff"},
	} {
		assert.ErrorIs(t, table.add(p), ErrInvalid, name)
	}
	const smallest = 2*(32+2) + 8 // two tables with their headers, and 4096 bytes
	_, err = newTable((smallest-1)*SectorSize, diskID)
	require.ErrorIs(t, err, ErrTooSmall)
	least, err := newTable(smallest*SectorSize, diskID)
	require.NoError(t, err)
	require.NoError(t, Write(blockdevtest.NewMem(smallest*SectorSize), least))
	dev := blockdevtest.NewMem(16 << 20)
	require.NoError(t, Write(dev, table))
	got, _, err := Read(dev)
	require.NoError(t, err)
	assert.Equal(t, table, got)
	assert.ErrorIs(t, Write(blockdevtest.NewMem(8<<20), table), ErrTooSmall)
}

func TestReadDamaged(t *testing.T) {
	const size = 8 << 20
	end := int64(size - SectorSize)
	cases := map[string]struct {
		flips []int64
		warn  []Warning
		err   error
	}{
		"whole":                 {},
		"no MBR":                {flips: []int64{510}, warn: []Warning{WarnNoMBR}},
		"primary signature":     {flips: []int64{512}, warn: []Warning{WarnPrimary}},
		"primary header":        {flips: []int64{512 + 60}, warn: []Warning{WarnPrimary}},
		"primary entries":       {flips: []int64{1024 + 5}, warn: []Warning{WarnPrimary}},
		"backup header":         {flips: []int64{end + 40}, warn: []Warning{WarnBackup}},
		"backup entries":        {flips: []int64{end - 100}, warn: []Warning{WarnBackup}},
		"both signatures":       {flips: []int64{512, end}, err: ErrNoTable},
		"signature and entries": {flips: []int64{512, end - 100}, err: ErrDamaged},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dev, table := written(t, size, 0)
			for _, off := range c.flips {
				flip(t, dev, off)
			}
			_, perr := ReadPrimary(dev, size/SectorSize)
			assert.Equal(t, slices.Contains(c.warn, WarnPrimary) || c.err != nil, perr != nil, "the primary table")
			got, warnings, err := Read(dev)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.warn, warnings)
			assert.Equal(t, table.Partitions, got.Partitions)
		})
	}
	_, _, err := Read(blockdevtest.NewMem(1000))
	assert.ErrorIs(t, err, ErrNoTable)
	_, _, err = Read(blockdevtest.NewMem(1 << 20))
	assert.ErrorIs(t, err, ErrNoTable)
}

// seal makes the checksums of a header that a test has changed right again.
func seal(b []byte) {
	clear(b[16:20])
	binary.LittleEndian.PutUint32(b[16:], crc32.ChecksumIEEE(b[:headerSize]))
}

func TestReadRefusesLyingHeaders(t *testing.T) {
	const size = 8 << 20
	for name, change := range map[string]func(b []byte){
		"entries 2^32-1": func(b []byte) { binary.LittleEndian.PutUint32(b[80:], 0xFFFFFFFF) },
		"no entries":     func(b []byte) { binary.LittleEndian.PutUint32(b[80:], 0) },
		"entry size":     func(b []byte) { binary.LittleEndian.PutUint32(b[84:], 1<<30) },
		"table beyond":   func(b []byte) { binary.LittleEndian.PutUint64(b[72:], 1<<62) },
		"table at 0":     func(b []byte) { binary.LittleEndian.PutUint64(b[72:], 0) },
		"table inside":   func(b []byte) { binary.LittleEndian.PutUint64(b[72:], 100) },
		"usable beyond":  func(b []byte) { binary.LittleEndian.PutUint64(b[48:], 1<<40) },
		"wrong place":    func(b []byte) { binary.LittleEndian.PutUint64(b[24:], 7) },
		"header size":    func(b []byte) { binary.LittleEndian.PutUint32(b[12:], 1<<31) },
	} {
		t.Run(name, func(t *testing.T) {
			dev, _ := written(t, size, 0)
			for _, off := range []int64{512, size - 512} {
				b := make([]byte, 512)
				_, err := dev.ReadAt(b, off)
				require.NoError(t, err)
				change(b)
				seal(b)
				_, err = dev.WriteAt(b, off)
				require.NoError(t, err)
			}
			_, _, err := Read(dev)
			require.ErrorIs(t, err, ErrDamaged)
		})
	}
}

// Each limit of a header is accepted itself, and the next value is not.
func TestLimitsOfAHeader(t *testing.T) {
	const sectors = 1 << 14
	const most = MaxEntries * entrySize / SectorSize // sectors of the largest table
	for name, c := range map[string]struct {
		change func(h *header)
		ok     bool
	}{
		"as written":                      {func(*header) {}, true},
		"most entries":                    {func(h *header) { h.Entries, h.FirstUsable = MaxEntries, 2+most }, true},
		"too many entries":                {func(h *header) { h.Entries, h.FirstUsable = MaxEntries+1, 4+most }, false},
		"one entry":                       {func(h *header) { h.Entries = 1 }, true},
		"no entry":                        {func(h *header) { h.Entries = 0 }, false},
		"larger entries":                  {func(h *header) { h.Entries, h.EntrySize = 64, 2*entrySize }, false},
		"one usable sector":               {func(h *header) { h.LastUsable = h.FirstUsable }, true},
		"no usable sector":                {func(h *header) { h.LastUsable = h.FirstUsable - 1 }, false},
		"usable to the last sector":       {func(h *header) { h.LastUsable = sectors - 1 }, true},
		"usable beyond":                   {func(h *header) { h.LastUsable = sectors }, false},
		"table in the first place":        {func(h *header) { h.Table, h.FirstUsable = 2, 34 }, true},
		"table in the header":             {func(h *header) { h.Table, h.FirstUsable = 1, 34 }, false},
		"usable sectors in the table":     {func(h *header) { h.FirstUsable = 33 }, false},
		"table behind the usable sectors": {func(h *header) { h.FirstUsable, h.LastUsable, h.Table = 2, 99, 100 }, true},
		"usable sectors in the header":    {func(h *header) { h.FirstUsable, h.LastUsable, h.Table = 1, 99, 100 }, false},
		"table in the last usable sector": {func(h *header) { h.FirstUsable, h.LastUsable, h.Table = 2, 100, 100 }, false},
		"table to the last sector":        {func(h *header) { h.LastUsable, h.Table = 1000, sectors-32 }, true},
		"table beyond the last sector":    {func(h *header) { h.LastUsable, h.Table = 1000, sectors-31 }, false},
		"table behind the device":         {func(h *header) { h.Table = sectors }, false},
	} {
		h := header{Self: 1, Other: sectors - 1, FirstUsable: 34, LastUsable: 16000, Table: 2, Entries: 128, EntrySize: entrySize}
		c.change(&h)
		_, err := decodeHeader(h.encode(), 1, sectors)
		if c.ok {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorIs(t, err, ErrDamaged, name)
		}
	}
	for size, ok := range map[uint32]bool{headerSize - 1: false, headerSize: true, SectorSize: true, SectorSize + 1: false} {
		h := header{Self: 1, Other: sectors - 1, FirstUsable: 34, LastUsable: 16000, Table: 2, Entries: 128, EntrySize: entrySize}
		b := h.encode()
		binary.LittleEndian.PutUint32(b[12:], size)
		clear(b[16:20])
		binary.LittleEndian.PutUint32(b[16:], crc32.ChecksumIEEE(b[:min(size, SectorSize)]))
		_, err := decodeHeader(b, 1, sectors)
		assert.Equal(t, ok, err == nil, "a header of %d bytes: %v", size, err)
	}
}

// Others may make tables of four entries: with these the smallest device has six sectors.
func TestReadsTheSmallestDevice(t *testing.T) {
	dev, entries := blockdevtest.NewMem(minSectors*SectorSize), make([]byte, SectorSize)
	for _, at := range [][3]uint64{{1, 5, 2}, {5, 1, 4}} { // header, its twin, the entries
		h := header{Self: at[0], Other: at[1], FirstUsable: 3, LastUsable: 3, Table: at[2], Entries: 4, EntrySize: entrySize,
			TableCRC: crc32.ChecksumIEEE(entries)}
		require.NoError(t, put(dev, h.encode(), at[0]))
		require.NoError(t, put(dev, entries, at[2]))
	}
	table, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Equal(t, []Warning{WarnNoMBR}, warnings)
	assert.Empty(t, table.Partitions)
	_, err = ReadPrimary(dev, minSectors)
	require.NoError(t, err)
}

// A table tells for which size it was made, but never more than the device has.
func TestSizeOfATable(t *testing.T) {
	const sectors = 8 << 20 / SectorSize
	for name, c := range map[string]struct {
		device int64
		twin   uint64
		want   uint64
	}{
		"as it was made": {8 << 20, sectors - 1, sectors}, "a device that grew": {32 << 20, sectors - 1, sectors},
		"cut":     {8<<20 - SectorSize, sectors - 1, sectors - 1},
		"no twin": {8 << 20, 1<<64 - 1, sectors},
	} {
		dev, _ := written(t, 8<<20, 0)
		patch(t, dev, 1, func(b []byte) { binary.LittleEndian.PutUint64(b[32:], c.twin) })
		dev.Resize(c.device)
		table, _, err := Read(dev)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, table.Sectors, name)
	}
}

func TestResize(t *testing.T) {
	dev, table := written(t, 8<<20, 0)
	dev.Resize(32 << 20)
	_, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Equal(t, []Warning{WarnBackupMoved}, warnings)

	got, err := Resize(dev, dev.Size(), -1)
	require.NoError(t, err)
	assert.Equal(t, table.Partitions, got.Partitions)
	again, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, got, again)
	got, err = Resize(dev, 32<<20, 0)
	require.NoError(t, err)
	assert.Greater(t, got.Partitions[0].Size(), int64(30<<20))

	_, err = Resize(dev, 16<<20, -1)
	require.ErrorIs(t, err, ErrInvalid, "the partition does not fit")
	got, err = Resize(dev, 16<<20, 0)
	require.NoError(t, err)
	dev.Resize(16 << 20)
	again, warnings, err = Read(dev)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, got, again)
	_, err = Resize(dev, 16<<20, 3)
	require.ErrorIs(t, err, ErrInvalid)
}

// patch changes a header on a device and seals it.
func patch(t *testing.T, dev blockdev.Device, sector uint64, change func(b []byte)) {
	t.Helper()
	b, err := get(dev, sector, 1)
	require.NoError(t, err)
	change(b)
	seal(b)
	require.NoError(t, put(dev, b, sector))
}

// TestTablesThatDiffer: each of the fields that both tables have in common is compared.
func TestTablesThatDiffer(t *testing.T) {
	const sectors = 8 << 20 / SectorSize
	dev, table := written(t, 8<<20, 0)
	patch(t, dev, sectors-1, func(b []byte) { b[56]++ }) // the identifier of the disk
	got, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Equal(t, []Warning{WarnDifferent}, warnings)
	assert.Equal(t, table, got)
}

// TestReadPrimary: for the names in an image the primary table alone is enough, if it is where tools put it.
func TestReadPrimary(t *testing.T) {
	const sectors = 8 << 20 / SectorSize
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		change func(b []byte)
		err    error
	}{
		"whole":                  {func([]byte) {}, nil},
		"last place of a backup": {func(b []byte) { le.PutUint64(b[32:], le.Uint64(b[48:])+32) }, nil},
		"backup too early":       {func(b []byte) { le.PutUint64(b[32:], le.Uint64(b[48:])+31) }, ErrDamaged},
		"backup outside":         {func(b []byte) { le.PutUint64(b[32:], sectors) }, ErrDamaged},
		"no signature":           {func(b []byte) { b[0]++ }, ErrNoTable},
	} {
		dev, _ := written(t, 8<<20, 0)
		patch(t, dev, 1, c.change)
		_, err := ReadPrimary(dev, sectors)
		assert.ErrorIs(t, err, c.err, name)
	}
	dev, table := written(t, 8<<20, 0)
	entries, err := get(dev, 2, 32)
	require.NoError(t, err)
	require.NoError(t, put(dev, entries, 40))
	patch(t, dev, 1, func(b []byte) {
		le.PutUint64(b[40:], 2048)
		le.PutUint64(b[72:], 40)
	})
	_, _, err = Read(dev)
	require.NoError(t, err)
	_, err = ReadPrimary(dev, sectors)
	require.ErrorIs(t, err, ErrDamaged, "entries that do not follow the header")
	_, err = ReadPrimary(dev, minSectors-1)
	require.ErrorIs(t, err, ErrNoTable)
	assert.Len(t, table.Partitions, 1)
}

// TestNewBootRecord: one partition of type 0xEE from sector 1 over the whole device, or as far as 32 bits reach.
func TestNewBootRecord(t *testing.T) {
	for sectors, length := range map[uint64]uint32{16384: 16383, 1 << 32: 0xFFFFFFFF, 1 << 40: 0xFFFFFFFF} {
		entry := []byte{0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0}
		want := binary.LittleEndian.AppendUint32(append(make([]byte, 446), entry...), length)
		got := updateMBR(make([]byte, SectorSize), sectors)
		assert.Equal(t, want, got[:462])
		assert.Equal(t, append(make([]byte, 48), 0x55, 0xAA), got[462:])
	}
}

// TestBootRecordKeepsWhatIsNotOurs: the boot code in front of the partitions, the disk's signature, and the partitions
// of a hybrid record, with which systems that know no GPT start.
func TestBootRecordKeepsWhatIsNotOurs(t *testing.T) {
	sector := func(dev blockdev.Device) []byte {
		b, err := get(dev, 0, 1)
		require.NoError(t, err)
		return b
	}
	for name, hybrid := range map[string]bool{"protective": false, "hybrid": true} {
		t.Run(name, func(t *testing.T) {
			dev, table := written(t, 8<<20, 0)
			want := sector(dev)
			for i := range 446 {
				want[i] = byte(i)
			}
			if hybrid {
				copy(want[446+16:], []byte{0x80, 0, 2, 0, 0x83, 0xFF, 0xFF, 0xFF, 0, 8, 0, 0, 0, 16, 0, 0})
			}
			_, err := dev.WriteAt(want, 0)
			require.NoError(t, err)
			dev.Resize(16 << 20)
			_, err = Resize(dev, dev.Size(), -1)
			require.NoError(t, err)
			if !hybrid {
				binary.LittleEndian.PutUint32(want[446+12:], 16<<20/512-1)
			}
			assert.Equal(t, want, sector(dev))
			want[510] = 0
			_, err = dev.WriteAt(want, 0)
			require.NoError(t, err)
			require.NoError(t, Write(dev, table))
			assert.Equal(t, updateMBR(make([]byte, SectorSize), 8<<20/512), sector(dev), "a record that is none goes")
		})
	}
}

// TestWriteInterrupted cuts every write and flush of a resize: the table must stay readable.
func TestWriteInterrupted(t *testing.T) {
	boom := errors.New("power cut")
	for cut := 1; ; cut++ {
		dev, table := written(t, 8<<20, 0)
		dev.Resize(16 << 20)
		calls := 0
		dev.Hook = func(op blockdevtest.Op, off, n int64) error {
			if op == blockdevtest.OpRead {
				return nil
			}
			if calls++; calls >= cut {
				return boom
			}
			return nil
		}
		_, err := Resize(dev, dev.Size(), -1)
		dev.Hook = nil
		got, _, rerr := Read(dev)
		require.NoError(t, rerr)
		assert.Equal(t, table.Partitions, got.Partitions)
		if err == nil {
			assert.Greater(t, cut, 4)
			return
		}
		require.ErrorIs(t, err, boom)
	}
}

func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1<<20, 1<<30).Draw(t, "size")
		table, err := newTable(size, diskID)
		require.NoError(t, err)
		next := table.FirstUsable
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			first := next + rapid.Uint64Range(0, 100).Draw(t, "gap")
			last := first + rapid.Uint64Range(0, 500).Draw(t, "len")
			if last > table.LastUsable {
				break
			}
			name := rapid.StringN(0, 18, 18).Draw(t, "name")
			p := Partition{Type: LinuxData, First: first, Last: last, Attributes: rapid.Uint64().Draw(t, "attr"), Name: name}
			if strings.ContainsRune(name, 0) {
				require.ErrorIs(t, table.add(p), ErrInvalid)
				continue // a zero ends the name on disk
			}
			require.NoError(t, table.add(p))
			next = last + 1
		}
		dev := blockdevtest.NewMem(size)
		require.NoError(t, Write(dev, table))
		got, warnings, err := Read(dev)
		require.NoError(t, err)
		require.Empty(t, warnings)
		require.Equal(t, table, got)
	})
}

// TestTableOfAnOddCountIsWrittenBack takes a table of 126 entries, as other tools may make: 31.5 sectors.
func TestTableOfAnOddCountIsWrittenBack(t *testing.T) {
	dev, table := written(t, 1<<20, 0)
	table.entries = 126
	entries := table.encodeEntries()
	h := header{
		Self: 1, Other: table.Sectors - 1, FirstUsable: table.FirstUsable, LastUsable: table.LastUsable, Disk: table.Disk,
		Table: 2, Entries: 126, EntrySize: entrySize, TableCRC: crc32.ChecksumIEEE(entries),
	}
	_, err := dev.WriteAt(append(h.encode(), entries...), SectorSize)
	require.NoError(t, err)
	got, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Equal(t, []Warning{WarnDifferent}, warnings)
	require.NoError(t, Write(dev, got))
	again, warnings, err := Read(dev)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, table.Partitions, again.Partitions)
}

// newTable is an empty table for a device of size bytes.
func newTable(size int64, disk GUID) (*Table, error) {
	t := &Table{Disk: disk, Sectors: uint64(max(size, 0)) / SectorSize, entries: entryCount}
	return t, t.layout()
}

// add appends a partition in the first free place; the table stays as it was if it does not fit.
func (t *Table) add(p Partition) error {
	for _, q := range t.Partitions {
		if q.Index == p.Index {
			p.Index++
		}
	}
	next := *t
	next.Partitions = append(slices.Clone(t.Partitions), p)
	slices.SortFunc(next.Partitions, func(a, b Partition) int { return a.Index - b.Index })
	err := next.check()
	if err == nil {
		*t = next
	}
	return err
}
