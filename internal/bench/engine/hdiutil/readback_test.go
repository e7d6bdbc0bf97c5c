package hdiutil

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// header is the start of an encrypted file: encrcdsa, version 2, AES with so many key bits.
func header(bits uint32) []byte {
	h := make([]byte, 4096)
	copy(h, "encrcdsa")
	binary.BigEndian.PutUint32(h[8:], 2)
	binary.BigEndian.PutUint32(h[0x18:], bits)
	return h
}

// trailer is a koly trailer behind some data.
func trailer(data, xml uint64) []byte {
	b := make([]byte, 4096+512)
	k := b[4096:]
	copy(k, "koly")
	binary.BigEndian.PutUint64(k[32:], data)
	binary.BigEndian.PutUint64(k[224:], xml)
	return b
}

func TestInspectFile(t *testing.T) {
	gpt := make([]byte, 4096)
	copy(gpt[512:], "EFI PART")
	for name, test := range map[string]struct {
		data []byte
		want fileInfo
	}{
		"raw":         {make([]byte, 4096), fileInfo{format: "UDRW", size: 4096, layout: "none"}},
		"partitioned": {gpt, fileInfo{format: "UDRW", size: 4096, layout: "GPT"}},
		"empty":       {nil, fileInfo{format: "UDRW"}},
		"aes-256":     {header(256), fileInfo{cipher: "AES-256"}},
		"aes-128":     {header(128), fileInfo{cipher: "AES-128"}},
		"other key":   {header(7), fileInfo{cipher: "encrypted"}},
		"version 1":   {append(make([]byte, 4088), "cdsaencr"...), fileInfo{cipher: "encrypted"}},
		"sparse":      {append([]byte("sprs"), make([]byte, 4092)...), fileInfo{format: "UDSP"}},
		"asif":        {append([]byte("shdw"), make([]byte, 4092)...), fileInfo{format: "ASIF"}},
		"udif":        {trailer(4000, 96), fileInfo{format: "UDIF"}},
		"raw stub":    {trailer(4096, 0), fileInfo{format: "UDRW", size: 4096, layout: "none"}},
		"wrong stub":  {trailer(1<<40, 0), fileInfo{format: "UDIF"}},
	} {
		got, err := inspectFile(bytes.NewReader(test.data), int64(len(test.data)))
		require.NoError(t, err, name)
		assert.Equal(t, test.want, got, name)
	}
}

func TestCheckMade(t *testing.T) {
	for _, test := range []struct {
		found      fileInfo
		format     string
		encryption string
		ok         bool
	}{
		{fileInfo{format: "UDRW"}, "UDRW", "none", true}, {fileInfo{format: "UDRW"}, "UDTO", "", true},
		{fileInfo{format: "UDIF"}, "UDZO", "none", true}, {fileInfo{format: "UDIF"}, "UDRW", "none", false},
		{fileInfo{format: "UDRW"}, "UDZO", "none", false}, {fileInfo{format: "UDRW"}, "ASIF", "none", false},
		{fileInfo{format: "UDRW", layout: "none"}, "ASIF", "AES-256", true}, {fileInfo{format: "UDRW", layout: "GPT"}, "ASIF", "AES-256", false},
		{fileInfo{format: "UDSP"}, "ASIF", "AES-256", false},
		{fileInfo{format: "ASIF"}, "ASIF", "AES-256", true}, {fileInfo{format: "UDRW"}, "UDRW", "AES-256", false},
		{fileInfo{cipher: "AES-256"}, "UDRW", "AES-256", true}, {fileInfo{cipher: "AES-128"}, "UDRW", "AES-256", false},
		{fileInfo{cipher: "encrypted"}, "UDRW", "AES-256", true}, {fileInfo{cipher: "AES-256"}, "UDRW", "none", false},
		{fileInfo{format: "UDSB", cipher: "AES-128"}, "UDSB", "AES-128", true}, {fileInfo{format: "UDSB"}, "UDSB", "AES-128", false},
	} {
		err := test.found.checkMade(formatOf(test.format), test.encryption)
		assert.Equal(t, test.ok, err == nil, "%+v: %v", test, err)
	}
}

// Encrypted ASIF has no known magic number, and its length is not that of the device.
func TestEncryptedASIFWithoutMagicNumber(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, dir.WriteFileAtomic("x.asif", bytes.Repeat([]byte{7}, 1<<16), 0o600))
	i, err := (&Engine{}).openImage(dir, "x.asif", spec("ASIF", encrypted("AES-256")), choice{format: formatOf("ASIF"), size: 1 << 30})
	require.NoError(t, err)
	assert.Equal(t, int64(1<<30), i.Made().Size)
	assert.Empty(t, i.info.layout)
	require.NoError(t, i.checkResized(2<<30), "the file does not show the length of the device")
}

func FuzzInspectFile(f *testing.F) {
	f.Add(header(256))
	f.Add(trailer(4096, 0))
	f.Add([]byte("shdw"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := inspectFile(bytes.NewReader(data), int64(len(data)))
		if err != nil || got.format == "" && got.cipher == "" || got.size < 0 || got.size > int64(len(data)) {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}
