package plan

import (
	"slices"
	"testing"

	"dmgbench/internal/system/units"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryKindOfStepIsComplete(t *testing.T) {
	for _, k := range stepKinds {
		assert.NotEmpty(t, (&Step{Do: k.do}).Prose(), k.do)
		assert.NotEqual(t, k.do, (&Step{Do: k.do}).Prose())
		about := slices.IndexFunc(docRows["kinds of step"], func(row []string) bool { return row[0] == k.do })
		require.GreaterOrEqual(t, about, 0, "keys.md has no meaning of %s", k.do)
		assert.NotEmpty(t, docRows["kinds of step"][about][4], k.do)
		r := Reference{Tables: map[string][]KeyDoc{}}
		r.describe("", "step", k.table.keys)
		for _, key := range r.Tables[""] {
			assert.NotEmpty(t, key.About, "%s: %s", k.do, key.Name)
		}
	}
}

func TestProse(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		step Step
		want string
	}{
		{Step{Do: "attach"}, "attach and mount the image"},
		{Step{Do: "attach", On: "hurt", Mount: &no, Verify: &no, ReadOnly: &yes},
			"attach “hurt” without mounting it read-only, without verifying its checksum"},
		{Step{Do: "attach", Expect: "fail"}, "attach and mount the image; this has to fail"},
		{Step{Do: "remount", Times: 3, AtLeast: 10e9}, "detach and attach the image again, 3 times over, then leave it alone for 10 s"},
		{Step{Do: "settle", AtLeast: 5e9, UntilStable: true, AtMost: 300e9},
			"leave it alone for 5 s, until the size of the image on disk stops changing, 5 min at most"},
		{Step{Do: "write", Files: "gold", Workers: 4, Sync: "none"}, "write the files “gold” to the image, each timed, with workers 4, sync none"},
		{Step{Do: "read", Batch: "all", Order: "shuffled"}, "read all files, each timed, in random order"},
		{Step{Do: "delete", All: true}, "delete all files"},
		{Step{Do: "delete", All: true, Batch: "last"}, "delete the files that were written last"},
		{Step{Do: "delete", LastSets: 8, Batch: "last"}, "delete the files of the last 8 sets"},
		{Step{Do: "delete", Largest: 1}, "delete the largest file of those written last"},
		{Step{Do: "delete", Every: true}, "delete every other of the files"},
		{Step{Do: "delete", Share: 500_000, Batch: "all"}, "delete " + units.Share(500_000).String() + " of all files, drawn at random"},
		{Step{Do: "compact", Battery: "allow"}, "compact the image, on battery as well"},
		{Step{Do: "convert", Format: "UDZO", Encryption: "AES-256", As: "small", Place: "fast"},
			"convert the image to UDZO with AES-256 to the place “fast” as “small”"},
		{Step{Do: "transfer", Place: "usb", As: "copy"}, "copy the image to the place “usb” as “copy”"},
		{Step{Do: "check", What: "volume", Repair: true}, "check the file system of the image and repair it"},
		{Step{Do: "xattr", Action: "set", Attr: "a", Value: "b"}, `set the extended attribute "a" of the image to "b"`},
		{Step{Do: "stream", Direction: "compress", From: "a", To: "b", Codec: "zstd", Threads: 4},
			`compress the file "a" to "b", with codec zstd, 4 threads`},
		{Step{Do: "pause", Message: "Turn it off and on."}, "pause: Turn it off and on"},
		{Step{Do: "repeat", Times: 200}, "200 times over:"},
	} {
		assert.Equal(t, c.want, c.step.Prose())
	}
}

func TestProseOfFiles(t *testing.T) {
	f := FileSet{Order: "shuffled-all", Data: "mixed", Compressible: 0.5, Parts: []FilePart{
		{Sizes: []units.Bytes{2e6}, Sets: 1}, {Sizes: []units.Bytes{1e9, 3e6, 4e6}, Sets: 10},
		{Range: []units.Bytes{1e6, 2e6}, Count: 5, Sets: 2, Spread: "log"}, {Sizes: []units.Bytes{7e6}, Sets: 3}}}
	assert.Equal(t, "one file of 2 MB; 10 sets of 3 files of 3 MB to 1 GB; 2 sets of 5 files of random size from 1 MB to 2 MB (log); "+
		"3 files of 7 MB; in random order; "+f.Compressible.String()+" of each 4 KiB zeros, the rest random", f.Prose())
	s := Selector{{Key: "format", Values: []string{"UDRW", "UDSB"}}, {Key: "phase", Values: []string{"new"}}}
	assert.Equal(t, "format is UDRW or UDSB, phase is new", s.Prose())
}
