package container

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/system/hostio"
)

func TestProbe(t *testing.T) {
	koly := func(size int, length uint64, more map[int]uint64) []byte {
		b := make([]byte, size)
		copy(b[size-512:], "koly\x00\x00\x00\x04\x00\x00\x02\x00")
		binary.BigEndian.PutUint64(b[size-512+32:], length)
		for at, v := range more {
			binary.BigEndian.PutUint64(b[size-512+at:], v)
		}
		return b
	}
	d := tempDir(t)
	for name, c := range map[string]struct {
		data  []byte
		found string
	}{
		"encrypted": {append([]byte("encrcdsa"), make([]byte, 1016)...), "encrcdsa v2"},
		"old":       {append(make([]byte, 1016), "cdsaencr"...), "cdsaencr v1"},
		"udsp":      {append([]byte("sprs\x00\x00\x00\x04"), make([]byte, 4088)...), "UDSP"},
		"asif":      {append([]byte("shdw"), make([]byte, 508)...), "ASIF"},
		"segment":   {koly(2048, 1024, map[int]uint64{16: 1024, 56: 2<<32 | 2}), "segment 2 of 2"},
		"front":     {append([]byte("koly"), make([]byte, 508)...), "in front"},
		"odd":       {make([]byte, 513), "513 bytes"},
		"empty":     {nil, "0 bytes"},
	} {
		require.NoError(t, d.WriteFileAtomic(name, c.data, 0o600))
		_, err := Open(d, name, OpenOptions{ReadOnly: true})
		e, ok := errors.AsType[*UnsupportedError](err)
		if assert.True(t, ok, "%s: %v", name, err) {
			assert.Contains(t, e.Found, c.found)
			assert.ErrorIs(t, err, errors.ErrUnsupported)
		}
		found, err := Verify(d, name, OpenOptions{})
		require.NoError(t, err)
		assert.Len(t, found, 1)
	}
	// Without tables the data is the device, or they are where this file is not: images that are not flattened have them
	// in a resource fork.
	for name, data := range map[string][]byte{"unflattened": koly(2048, 1024, map[int]uint64{492: 8}), "bad stub": koly(2048, 4096, nil), "bad list": koly(2048, 100, map[int]uint64{224: 100})} {
		require.NoError(t, d.WriteFileAtomic(name, data, 0o600))
		_, err := Open(d, name, OpenOptions{ReadOnly: true})
		assert.ErrorIs(t, err, ErrCorrupt, name)
		found, err := Verify(d, name, OpenOptions{})
		require.NoError(t, err)
		assert.Len(t, found, 1)
	}
	for _, sectors := range []uint64{0, 2} {
		stub := koly(2048, 1024, map[int]uint64{492: sectors, 352: 2<<32 | 32})
		copy(stub, pattern(1024, 1))
		require.NoError(t, d.WriteFileAtomic("stub", stub, 0o600))
		img, err := Open(d, "stub", OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		got := make([]byte, 1024)
		_, err = img.ReadAt(got, 0)
		require.NoError(t, err)
		assert.Equal(t, stub[:1024], got)
		assert.Equal(t, UDRW, img.Format())
		assert.EqualValues(t, 1024, img.Size())
		require.NoError(t, img.Close())
		found, err := Verify(d, "stub", OpenOptions{})
		require.NoError(t, err)
		assert.Empty(t, found)
	}
	_, err := Open(d, "stub", OpenOptions{})
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, d.Mkdir("folder"))
	_, err = Open(d, "folder", OpenOptions{})
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = Open(d, "missing", OpenOptions{})
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestBundleVariants(t *testing.T) {
	make := func(t *testing.T) *hostio.Dir {
		d := tempDir(t)
		require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}))
		return d
	}
	put := func(t *testing.T, d *hostio.Dir, name, data string) {
		require.NoError(t, d.WriteFileAtomic("b/"+name, []byte(data), 0o644))
	}
	plist := string(info{Version: 1, BandSize: 1 << 20, Size: 4 << 20}.encode())
	t.Run("copy of the plist", func(t *testing.T) {
		d := make(t)
		put(t, d, "Info.plist", plist[:100])
		img, err := Open(d, "b", OpenOptions{})
		require.NoError(t, err)
		require.NoError(t, img.Resize(2<<20))
		require.NoError(t, img.Close())
		found, err := Verify(d, "b", OpenOptions{})
		require.NoError(t, err)
		assert.Empty(t, found, "a resize rewrites both")
		for _, name := range []string{"Info.plist", "Info.bckup"} {
			put(t, d, name, "rubbish")
			require.NoError(t, Repair(d, "b", OpenOptions{}))
			found, err = Verify(d, "b", OpenOptions{})
			require.NoError(t, err)
			assert.Empty(t, found, name)
		}
		put(t, d, "Info.plist", "")
		put(t, d, "Info.bckup", "")
		_, err = Open(d, "b", OpenOptions{})
		assert.ErrorIs(t, err, ErrCorrupt)
	})
	t.Run("version 2", func(t *testing.T) {
		d := make(t)
		put(t, d, "Info.plist", strings.Replace(plist, "<integer>1<", "<integer>2<", 1))
		_, err := Open(d, "b", OpenOptions{})
		assert.ErrorIs(t, err, errors.ErrUnsupported)
		img, err := Open(d, "b", OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		require.NoError(t, img.Close())
	})
	t.Run("encrypted", func(t *testing.T) {
		for token, want := range map[string]error{"encrcdsa and more": ErrCorrupt, "more and cdsaencr": errors.ErrUnsupported} {
			d := make(t)
			put(t, d, "token", token)
			_, err := Open(d, "b", OpenOptions{ReadOnly: true})
			assert.ErrorIs(t, err, want)
			assert.ErrorContains(t, err, "encrypted")
			_, err = EncryptionOf(d, "b")
			assert.ErrorIs(t, err, want)
			found, err := Verify(d, "b", OpenOptions{})
			require.NoError(t, err)
			require.Len(t, found, 1)
			assert.True(t, found[0].Fatal)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		d := make(t)
		put(t, d, "bands/0", strings.Repeat("x", 1<<20+1))
		put(t, d, "bands/4", "beyond")
		put(t, d, "bands/0A", "no number")
		put(t, d, "stranger", "")
		put(t, d, "Info.bckup", "")
		require.NoError(t, d.Mkdir("b/bands/2"))
		found, err := Verify(d, "b", OpenOptions{})
		require.NoError(t, err)
		var at []string
		for _, f := range found {
			at = append(at, f.Path)
		}
		assert.ElementsMatch(t, []string{"bands/0", "bands/4", "bands/0A", "stranger", "Info.bckup", "bands/2"}, at)
		assert.ErrorContains(t, Remove(d, "b"), "stranger")
	})
	t.Run("left behind by an interrupted shrink", func(t *testing.T) {
		d := make(t)
		put(t, d, "bands/5", "old data")
		put(t, d, "bands/7fffffffffffffff", "old data")
		img, err := Open(d, "b", OpenOptions{})
		require.NoError(t, err)
		require.NoError(t, img.Resize(8<<20))
		got := []byte("not read")
		_, err = img.ReadAt(got, 5<<20)
		require.NoError(t, err)
		assert.True(t, isZero(got), "a larger size does not bring it back")
		require.NoError(t, img.Close())
		found, err := Verify(d, "b", OpenOptions{})
		require.NoError(t, err)
		assert.Empty(t, found)
	})
	t.Run("band is a link", func(t *testing.T) {
		d := make(t)
		foreign := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(foreign, []byte("keep"), 0o600))
		require.NoError(t, os.Symlink(foreign, filepath.Join(d.Path(), "b", "bands", "1")))
		img, err := Open(d, "b", OpenOptions{})
		require.NoError(t, err)
		defer img.Close()
		_, err = img.WriteAt([]byte("x"), 1<<20)
		assert.ErrorIs(t, err, hostio.ErrNotRegular)
		got, err := os.ReadFile(foreign)
		require.NoError(t, err)
		assert.Equal(t, "keep", string(got))
	})
}

// A backup bundle is somebody's Time Machine: it is only read.
func TestBackupBundle(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "x.backupbundle", Spec{Format: UDSB, Size: 4 << 20}))
	img, err := Open(d, "x.backupbundle", OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, img.Close())
	_, err = Open(d, "x.backupbundle", OpenOptions{})
	require.ErrorIs(t, err, errors.ErrUnsupported)

	pass := []byte("secret")
	require.NoError(t, Create(d, "e.BackupBundle", Spec{Format: UDSB, Size: 4 << 20, Encryption: Encryption{Cipher: AES128, Passphrase: pass, Iterations: 1000}}))
	before, err := d.ReadFile("e.BackupBundle/token", 1<<20)
	require.NoError(t, err)
	require.ErrorIs(t, ChangePassphrase(d, "e.BackupBundle", pass, []byte("next"), 0), errors.ErrUnsupported)
	after, err := d.ReadFile("e.BackupBundle/token", 1<<20)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// What the files show without a passphrase: the format or the cipher, and sizes.
func TestDescribe(t *testing.T) {
	encrypted := func(version, bits uint32) []byte {
		h := make([]byte, 4096)
		copy(h, "encrcdsa")
		binary.BigEndian.PutUint32(h[8:], version)
		binary.BigEndian.PutUint32(h[24:], bits)
		return h
	}
	d := tempDir(t)
	for name, c := range map[string]struct {
		data []byte
		want Description
	}{
		"raw":       {make([]byte, 4096), Description{Format: UDRW, Size: 4096}},
		"empty":     {nil, Description{NoContainer: "file of 0 bytes"}},
		"aes-256":   {encrypted(2, 256), Description{Encrypted: true, KeyBits: 256}},
		"aes-128":   {encrypted(2, 128), Description{Encrypted: true, KeyBits: 128}},
		"other key": {encrypted(2, 7), Description{Encrypted: true}},
		"other":     {encrypted(3, 256), Description{Encrypted: true}},
		"version 1": {append(make([]byte, 4088), "cdsaencr"...), Description{Encrypted: true}},
		"sparse":    {append([]byte("sprs"), make([]byte, 4092)...), Description{Format: UDSP}},
		"asif":      {append([]byte("shdw"), make([]byte, 4092)...), Description{Format: ASIF}},
		"udif":      {append(make([]byte, 512), append([]byte("koly"), make([]byte, 508)...)...), Description{Format: UDIF}},
	} {
		require.NoError(t, d.WriteFileAtomic(name, c.data, 0o600))
		got, err := Describe(d, name)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	require.NoError(t, Create(d, "b.sparsebundle", Spec{Format: UDSB, Size: 8 << 20, BandSize: 1 << 20}))
	got, err := Describe(d, "b.sparsebundle")
	require.NoError(t, err)
	assert.Equal(t, Description{Format: UDSB, Size: 8 << 20, BandSize: 1 << 20, Version: 1}, got)
	_, err = Describe(d, "missing")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// TestEndOfImage: the trailer of an encrypted image of version 1 is recognised before other bytes, where it states that it
// starts there, and that of the disk on which the image is not.
func TestEndOfImage(t *testing.T) {
	d := tempDir(t)
	for start, want := range map[int]int64{8192: 8192 + crypt.TrailerSize, 8704: 0} {
		b := make([]byte, start+crypt.TrailerSize+2048)
		b = b[:len(b)/SectorSize*SectorSize]
		binary.BigEndian.PutUint64(b[start+crypt.TrailerStart:], 8192)
		copy(b[start+crypt.TrailerSize-len(markV1):], markV1)
		name := strconv.Itoa(start)
		require.NoError(t, os.WriteFile(filepath.Join(d.Path(), name), b, 0o600))
		img, err := Open(d, name, OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		end, err := EndOfImage(img)
		require.NoError(t, err)
		assert.Equal(t, want, end)
		require.NoError(t, img.Close())
	}
}
