package udif

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// appleImages are the UDIF images that the README beside them describes, by name, with the sha256 of the device.
func appleImages(t testing.TB) map[string]string {
	page, err := os.ReadFile(filepath.Join(images(t), "README.md"))
	require.NoError(t, err)
	found := map[string]string{}
	for line := range strings.Lines(string(page)) {
		columns := strings.Split(line, "|")
		if len(columns) < 7 || strings.TrimSpace(columns[3]) != "-" {
			continue
		}
		switch format := strings.TrimSpace(columns[2]); format {
		case "UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI":
			found[strings.TrimSpace(columns[1])] = strings.Trim(columns[5], " `")
		}
	}
	require.GreaterOrEqual(t, len(found), 6, "the README was not understood")
	return found
}

func TestAppleImages(t *testing.T) {
	for name, sum := range appleImages(t) {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(images(t), name))
			require.NoError(t, err)
			im := open(t, file, Options{})
			device := readAll(t, im)
			got := sha256.Sum256(device)
			require.Equal(t, sum, hex.EncodeToString(got[:]))
			for _, cache := range []int64{1, 1 << 20, 64 << 20} {
				im := open(t, file, Options{Cache: cache})
				var all sync.WaitGroup
				for reader := range 3 {
					all.Go(func() { readRandom(t, im, device, 6, uint64(reader)) })
				}
				all.Wait()
			}
			absent := 1 // images made from a folder have no checksum of the data fork
			if im.trailer.DataChecksum.Type != ChecksumNone {
				absent = 0
			}
			requireVerified(t, im, absent)
			assert.Contains(t, map[string]bool{"UDZO": true, "UDCO": true, "UDBZ": true, "ULFO": true, "ULMO": true}, string(im.Format()))
		})
	}
}

// TestAppleStructures writes the trailers and property lists of Apple's images again, and gets the same bytes.
func TestAppleStructures(t *testing.T) {
	for name := range appleImages(t) {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(images(t), name))
			require.NoError(t, err)
			im := open(t, file, Options{})
			trailer := im.Trailer()
			assert.Equal(t, file[len(file)-TrailerSize:], trailer.Marshal())
			if trailer.ForkLength > 0 {
				return // of 2003: other names and another plst
			}
			list := file[trailer.PlistOffset : trailer.PlistOffset+trailer.PlistLength]
			var again bytes.Buffer
			w := newPlistWriter(&again)
			require.NoError(t, parsePlist(io.NewSectionReader(bytes.NewReader(list), 0, int64(len(list))), func(r resource) error {
				data := bytes.Clone(r.data)
				w.resource(r.name, r.id, true, data)
				return nil
			}, func() {}))
			require.NoError(t, w.end())
			assert.Equal(t, string(list), again.String())
			layout, err := ProbeLayout(im, im.Size())
			require.NoError(t, err)
			require.Equal(t, SchemeGPT, layout.Scheme)
			for i, g := range im.Regions() {
				g.Checksum = Checksum{}
				assert.Equal(t, g, layout.Regions()[i])
			}
		})
	}
}
