package interoptest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container"
	"dmgbench/internal/interoptest"
	"dmgbench/internal/system/hostio"
)

func dissect(t *testing.T, image, out string) {
	interoptest.Run(t, interoptest.Python(t, "dissect.hypervisor"), interoptest.Script(t, "asif.py"), image, out)
}

// growing are the kinds that are read and written, with those who read them. libmodi follows no chain of index nodes
// and refuses small bands; of sparse bundles it gives zeros, so that it is not asked.
var growing = []struct {
	name string
	spec container.Spec
	by   map[string]func(t *testing.T, image, out string)
}{
	{"UDSP", container.Spec{Format: container.UDSP}, map[string]func(t *testing.T, image, out string){"libmodi": modi, "fstool": fstoolRaw}},
	{"UDSP of 3 MiB bands", container.Spec{Format: container.UDSP, BandSize: 3 << 20},
		map[string]func(t *testing.T, image, out string){"libmodi": modi, "fstool": fstoolRaw}},
	{"UDSB", container.Spec{Format: container.UDSB}, map[string]func(t *testing.T, image, out string){"fstool": fstoolRaw}},
	{"UDSB of 1 MiB bands", container.Spec{Format: container.UDSB, BandSize: 1 << 20},
		map[string]func(t *testing.T, image, out string){"fstool": fstoolRaw}},
	{"ASIF", container.Spec{Format: container.ASIF}, map[string]func(t *testing.T, image, out string){"dissect.hypervisor": dissect}},
}

// TestGrowingKinds lets others read images with a history.
func TestGrowingKinds(t *testing.T) {
	lives := 1
	if interoptest.Required() {
		lives = 4
	}
	for _, g := range growing {
		for life := range lives {
			t.Run(fmt.Sprintf("%s %d", g.name, life), func(t *testing.T) {
				dir, err := hostio.OpenDir(t.TempDir())
				require.NoError(t, err)
				defer dir.Close()
				name := "image" + container.Extension(g.spec.Format)
				spec := g.spec
				spec.Size = 20_000_000/512*512 + int64(life)*512
				require.NoError(t, container.Create(dir, name, spec))
				want := live(t, dir, name, spec.Size, uint64(life))
				for reader, read := range g.by {
					t.Run(reader, func(t *testing.T) {
						out := filepath.Join(t.TempDir(), "out.img")
						read(t, filepath.Join(dir.Path(), name), out)
						assert.Equal(t, shaOf(want), sha(t, out), "the device as %s gives it", reader)
					})
				}
			})
		}
	}
}

// live gives an image a history: writes that begin and end anywhere, holes, compactions, sizes up and down, closing
// and opening. It returns what the device holds.
func live(t *testing.T, dir *hostio.Dir, name string, size int64, seed uint64) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	want := make([]byte, size)
	img, err := container.Open(dir, name, container.OpenOptions{})
	require.NoError(t, err)
	for step := range 40 {
		off := r.Int64N(int64(len(want))/512) * 512
		n := min(512*(1+r.Int64N(8000)), int64(len(want))-off)
		switch r.IntN(8) {
		case 0, 1, 2, 3:
			fill(want[off:off+n], seed*100+uint64(step))
			_, err = img.WriteAt(want[off:off+n], off)
		case 4:
			clear(want[off : off+n])
			err = img.Discard(off, n)
		case 5:
			_, err = img.Compact(nil)
		case 6:
			resized := make([]byte, (size/1024+r.Int64N(size/512))*512)
			copy(resized, want)
			want = resized
			err = img.Resize(int64(len(want)))
		case 7:
			require.NoError(t, img.Close())
			img, err = container.Open(dir, name, container.OpenOptions{})
		}
		require.NoError(t, err, "step %d", step)
	}
	require.NoError(t, img.Close())
	return want
}

// TestWeReadOthers opens what fstool makes of a raw file.
func TestWeReadOthers(t *testing.T) {
	tools(t)
	fstool := interoptest.Tool(t, "fstool")
	for _, size := range sizes() {
		if size > 8<<20 { // fstool is a slow writer
			continue
		}
		dir := t.TempDir()
		raw := filepath.Join(dir, "raw.cdr")
		want := rawDevice(t, raw, size)
		for name, options := range map[string][]string{
			"a.sparseimage": nil, "a.sparsebundle": nil, "a.dmg": nil, "adc.dmg": {"--dmg-format", "UDCO"}, "bz.dmg": {"--dmg-format", "UDBZ"},
			"lzma.dmg": {"--dmg-format", "ULMO"}, "ro.dmg": {"--dmg-format", "UDRO"}, "md5.dmg": {"--dmg-format", "UFBI"},
		} {
			t.Run(fmt.Sprintf("%s of %d", name, size), func(t *testing.T) {
				image, out := filepath.Join(dir, name), filepath.Join(t.TempDir(), "out.cdr")
				interoptest.Run(t, fstool, append([]string{"convert", raw, image}, options...)...)
				hdiutil(t, "convert", image, "-format", "UDTO", "-o", out)
				assert.Equal(t, want, sha(t, out))
				if filepath.Ext(name) == ".dmg" {
					hdiutil(t, "verify", image)
				}
			})
		}
	}
}

// TestConvertedKinds lets others read what our tools make of a raw file, with bands of two sizes.
func TestConvertedKinds(t *testing.T) {
	tools(t)
	for _, size := range sizes() {
		dir := t.TempDir()
		raw := filepath.Join(dir, "raw.cdr")
		want := rawDevice(t, raw, size)
		for _, c := range []struct {
			name string
			make []string
			read func(t *testing.T, image, out string)
		}{
			{"a.sparsebundle", []string{"hdiutil", "convert", raw, "-format", "UDSB", "-o"}, fstoolRaw},
			{"b.sparsebundle", []string{"hdiutil", "convert", raw, "-format", "UDSB", "-imagekey", "sparse-band-size=2048", "-o"}, fstoolRaw},
			{"a.sparseimage", []string{"hdiutil", "convert", raw, "-format", "UDSP", "-o"}, fstoolRaw},
			{"b.sparseimage", []string{"hdiutil", "convert", raw, "-format", "UDSP", "-imagekey", "sparse-band-size=4096", "-o"}, modi},
			{"a.asif", []string{"diskutil", "image", "create", "from", "--format", "ASIF", raw}, dissect},
			{"a.dmg", []string{"hdiutil", "convert", raw, "-format", "UDRW", "-o"}, func(t *testing.T, image, out string) {
				interoptest.Run(t, interoptest.Tool(t, "qemu-img"), "convert", "-f", "raw", "-O", "raw", image, out)
			}},
		} {
			if c.name == "a.asif" && size > 512 && !interoptest.Required() {
				continue // dissect.hypervisor takes long to start; TestGrowingKinds lets it read a larger one
			}
			t.Run(fmt.Sprintf("%s of %d", c.name, size), func(t *testing.T) {
				image, out := filepath.Join(dir, c.name), filepath.Join(t.TempDir(), "out.img")
				interoptest.Run(t, c.make[0], append(c.make[1:], image)...)
				_, err := os.Stat(image)
				require.NoError(t, err)
				c.read(t, image, out)
				assert.Equal(t, want, sha(t, out))
			})
		}
	}
}
