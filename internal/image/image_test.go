package image

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFormats(t *testing.T) {
	names, imageTypes := map[string]bool{}, map[string]bool{}
	for i, f := range Formats {
		assert.Len(t, f.Name, 4)
		assert.False(t, names[f.Name], "two rows for %s", f.Name)
		assert.False(t, f.ImageType != "" && imageTypes[f.ImageType], "two formats with diskutil's type %s",
			f.ImageType)
		names[f.Name], imageTypes[f.ImageType] = true, true
		assert.Equal(t, byte('.'), f.Extension[0], f.Name)
		assert.Equal(t, f.Grows(), f.Unit > 0, "%s: only formats that grow have units", f.Name)
		assert.True(t, !f.UDIF || f.ReadOnly, "%s: UDIF images are read-only", f.Name)
		assert.True(t, f.Writable() == (f.CreateType != "" || f.ImageType != "") || f.ReadOnly, "%s: nothing makes it",
			f.Name)
		for _, text := range []string{f.Title, f.Legend, f.Description, f.Class, f.Store, f.Attached} {
			assert.NotEmpty(t, text, f.Name)
		}
		if i > 0 {
			assert.False(t, f.Writable() && Formats[i-1].ReadOnly, "%s: formats that are made empty come first", f.Name)
		}
		found, ok := FormatNamed(f.Name)
		require.True(t, ok)
		assert.Equal(t, f, found)
	}
	assert.Equal(t, []string{UDRW, UDSB, UDSP, ASIF}, FormatNames(Format.Writable))
	assert.Len(t, FormatNames(nil), len(Formats))
	for name, want := range map[string]Allocation{UDRW: AllocateAll, UDSB: AllocateUnits, "UFBI": AllocateAll, UDZO: AllocateContent} {
		f, _ := FormatNamed(name)
		assert.Equal(t, want, f.Allocation, name)
	}
	raw, ok := FormatNamed("raw")
	assert.True(t, ok)
	assert.Equal(t, UDRW, raw.Name)
	for _, name := range []string{"", "UDXX"} {
		_, ok := FormatNamed(name)
		assert.False(t, ok, name)
	}
}

func TestBandSize(t *testing.T) {
	for _, test := range []struct {
		format     string
		band, want int64
	}{
		{UDRW, 0, 0}, {UDRW, 1 << 20, 0}, {UDSB, 0, 8 << 20}, {UDSB, 2 << 20, 2 << 20}, {UDSP, 0, 1 << 20},
		{ASIF, 4 << 20, 1 << 20},
	} {
		f, _ := FormatNamed(test.format)
		assert.Equal(t, test.want, f.BandSize(test.band), "%s %d", test.format, test.band)
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		spec Spec
		want string // "": valid
	}{
		{Spec{UDRW, 512, 0}, ""},
		{Spec{UDRW, MaxSize, 0}, ""},
		{Spec{UDSB, 1 << 30, MinBandSize}, ""},
		{Spec{UDSB, 1 << 30, MaxBandSize}, ""},
		{Spec{UDSP, (1<<32 - 2) << 20, 0}, ""},
		{Spec{ASIF, (1<<32 - 1) << 20, 0}, ""},
		{Spec{"UDXX", 512, 0}, `unknown image format "UDXX": want one of UDRW, UDSB, UDSP, ASIF`},
		{Spec{UDRW, 0, 0}, "size is 0"},
		{Spec{UDRW, -512, 0}, "size of -512 bytes, want a multiple of 512 up to 1152921504606846976"},
		{Spec{UDRW, 511, 0}, "size of 511 bytes, want a multiple of 512 up to 1152921504606846976"},
		{Spec{UDRW, MaxSize + 512, 0}, "size of 1152921504606847488 bytes, want a multiple of 512 up to 1152921504606846976"},
		{Spec{UDRW, 512, 1 << 20}, "band size of 1048576 bytes: UDRW has no bands"},
		{Spec{ASIF, 512, 1 << 20}, "band size of 1048576 bytes: ASIF always has chunks of 1048576"},
		{Spec{UDSB, 512, MinBandSize - 512},
			"a band of 1048064 B is not possible; want a multiple of 512 B from 1 MiB to 8 GiB"},
		{Spec{UDSB, 512, MaxBandSize + 512},
			"a band of 8589935104 B is not possible; want a multiple of 512 B from 1 MiB to 8 GiB"},
		{Spec{UDSB, 512, MinBandSize + 1},
			"a band of 1048577 B is not a multiple of 512 B; want 1048576 B or 1049088 B, the neighbours"},
		{Spec{UDSP, (1<<32-2)<<20 + 512, 0},
			"size of 4503599625273856 bytes: UDSP has at most 4294967294 units of 1048576 bytes"},
		{Spec{ASIF, (1<<32-1)<<20 + 512, 0},
			"size of 4503599626322432 bytes: ASIF has at most 4294967295 units of 1048576 bytes"},
	} {
		err := test.spec.Validate()
		if test.want == "" {
			assert.NoError(t, err, "%+v", test.spec)
			continue
		}
		assert.EqualError(t, err, test.want, "%+v", test.spec)
	}
	assert.ErrorIs(t, Spec{Format: "UDXX"}.Validate(), ErrUnknownFormat)
}

func TestFilesystems(t *testing.T) {
	for _, f := range Filesystems {
		assert.Equal(t, f, FilesystemNamed(f.Name))
		assert.LessOrEqual(t, f.MinSize+PartitionTableSize, f.UsefulSize, f.Name)
	}
	assert.EqualValues(t, 1<<20+33*512, PartitionTableSize, "a MiB in front, and the second table of 33 sectors")
	assert.Zero(t, FilesystemNamed("ZFS"))
	assert.Len(t, FilesystemNames(), len(Filesystems))
}
