package host

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The fixture has the shape of ioreg's list on Apple silicon, shortened: an SSD with
// an APFS container, a disk image, a driver inside of that tree, one that counts nothing.
func storageFixture(t testing.TB) []byte {
	out, err := os.ReadFile("testdata/ioreg-storage.plist")
	require.NoError(t, err)
	return out
}

func TestStorageBytes(t *testing.T) {
	out := storageFixture(t)
	for device, want := range map[string][2]int64{
		"disk0":     {981247152128, 732100542464},
		"disk0s2":   {981247152128, 732100542464},
		"disk3s5":   {981247152128, 732100542464}, // a volume is on the disk that carries its container
		"disk3s1s1": {981247152128, 732100542464},
		"disk6s1":   {4096, 0},
		"disk7":     {5, 6}, // once, though its driver is seen twice
	} {
		r, w, err := storageBytes(out, device)
		require.NoError(t, err, device)
		assert.Equal(t, want, [2]int64{r, w}, device)
	}
	for device, why := range map[string]string{
		"disk8": `the driver of "disk8" counts no bytes`, "disk9": `no storage driver has a device "disk9"`, "disk": "no storage driver",
	} {
		_, _, err := storageBytes(out, device)
		require.ErrorIs(t, err, ErrUnsupported, device)
		assert.ErrorContains(t, err, why)
	}
	for name, text := range map[string]string{
		"nothing": "", "words": "ioreg: unrecognized option", "dictionary": `<?xml version="1.0"?><plist version="1.0"><dict/></plist>`,
		"cut": string(out[:len(out)/2]), "numbers": `<?xml version="1.0"?><plist version="1.0"><array><integer>1</integer></array></plist>`,
	} {
		_, _, err := storageBytes([]byte(text), "disk0")
		require.ErrorIs(t, err, ErrUnsupported, name)
	}
}

// A driver counts both ways or not at all, and no sum may pass what an int64 holds.
func TestStorageBytesNeedsBothCounters(t *testing.T) {
	driver := func(statistics string) string {
		return "<dict><key>BSD Name</key><string>disk1</string><key>Statistics</key><dict>" + statistics + "</dict></dict>"
	}
	read := func(n string) string { return "<key>Bytes (Read)</key><integer>" + n + "</integer>" }
	written := func(n string) string { return "<key>Bytes (Write)</key><integer>" + n + "</integer>" }
	const most = "9223372036854775807"
	for drivers, known := range map[string]bool{
		driver(read("1") + written("2")): true, driver(read("1")): false, driver(written("2")): false,
		driver(read("-1") + written("2")): false, driver(read("1") + written("-2")): false,
		driver(read(most)+written("2")) + driver(read("1")+written("2")): false,
		driver(read("1")+written(most)) + driver(read("1")+written("2")): false,
		driver(read("1")+written("2")) + driver(read("3")+written("4")):  true,
	} {
		_, _, err := storageBytes([]byte(`<?xml version="1.0"?><plist version="1.0"><array>`+drivers+`</array></plist>`), "disk1")
		assert.Equal(t, known, err == nil, "%s: %v", drivers, err)
	}
}

func TestBSDName(t *testing.T) {
	for from, want := range map[string]string{"/dev/disk3s5": "disk3s5", "/dev/disk12s1s1": "disk12s1s1",
		"//user@server/share": "", "map auto_home": "", "devfs": "", "/dev/disk": "", "/dev/../disk1": ""} {
		name, err := bsdName(from)
		assert.Equal(t, want, name, from)
		if want == "" {
			require.ErrorIs(t, err, ErrUnsupported, from)
		}
	}
}

func FuzzStorageBytes(f *testing.F) {
	f.Add(storageFixture(f), "disk3s5")
	f.Add([]byte(`<?xml version="1.0"?><plist version="1.0"><array><dict><key>BSD Name</key><string>d</string><key>Statistics</key><dict><key>Bytes (Read)</key><integer>-1</integer></dict></dict></array></plist>`), "d")
	f.Add([]byte("<?xml (a, b)"), "a")
	f.Fuzz(func(t *testing.T, out []byte, device string) {
		r, w, err := storageBytes(out, device)
		if r < 0 || w < 0 || err != nil && (r != 0 || w != 0) {
			t.Fatalf("%d %d %v", r, w, err)
		}
	})
}
