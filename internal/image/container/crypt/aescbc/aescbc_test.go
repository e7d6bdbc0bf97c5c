package aescbc

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fill(seed byte, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// TestExpand compares with the round keys of FIPS 197, appendices A.1 to A.3: the last of each encryption schedule.
func TestExpand(t *testing.T) {
	for _, test := range []struct{ key, last string }{
		{"2b7e151628aed2a6abf7158809cf4f3c", "d014f9a8c9ee2589e13f0cc8b6630ca6"},
		{"8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "e98ba06f448c773c8ecc720401002202"},
		{"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "fe4890d1e6188d0b046df344706c631e"},
	} {
		key := unhex(t, test.key)
		k := &Key{rounds: len(key)/4 + 6}
		k.expand(key)
		assert.Equal(t, test.last, hex.EncodeToString(k.enc[k.rounds*Size:][:Size]))
		assert.Equal(t, key[:Size], k.enc[:Size])
		assert.Equal(t, key[:Size], k.dec[k.rounds*Size:][:Size])
		assert.Equal(t, k.enc[k.rounds*Size:][:Size], k.dec[:Size])
	}
}

// TestVectors are CBC-AES128, 192 and 256 of NIST SP 800-38A, F.2: four AES blocks each, here as one unit.
func TestVectors(t *testing.T) {
	plain := unhex(t, "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"+
		"30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
	iv := unhex(t, "000102030405060708090a0b0c0d0e0f")
	for _, test := range []struct{ key, first, last string }{
		{"2b7e151628aed2a6abf7158809cf4f3c", "7649abac8119b246cee98e9b12e9197d", "3ff1caa1681fac09120eca307586e1a7"},
		{"8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "4f021db243bc633d7178183a9fa071e8", "08b0e27988598881d920a9e64f5615cd"},
		{"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "f58c4c04d6e5f1ba779eabfb5f7bfbd6", "b2eb05e2c39be9fcda6c19078c6a9d1b"},
	} {
		for _, use := range supported() {
			k, err := newKey(unhex(t, test.key), use)
			require.NoError(t, err)
			out := make([]byte, len(plain))
			k.Encrypt(out, plain, iv, len(plain))
			assert.Equal(t, test.first, hex.EncodeToString(out[:Size]), use.name)
			assert.Equal(t, test.last, hex.EncodeToString(out[48:]), use.name)
			k.Decrypt(out, out, iv, len(plain))
			assert.Equal(t, plain, out, use.name)
		}
	}
}

// differ compares every set with the standard library on count units, at the alignments given, in place or not, and
// looks for bytes written outside.
func differ(t *testing.T, key, data, ivs []byte, unit, alignSrc, alignDst int, inPlace bool) {
	t.Helper()
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	want := make([]byte, len(data))
	for i := 0; i < len(data); i += unit {
		cipher.NewCBCEncrypter(block, ivs[i/unit*Size:][:Size]).CryptBlocks(want[i:i+unit], data[i:i+unit])
	}
	for _, use := range supported() {
		k, err := newKey(key, use)
		require.NoError(t, err)
		for _, direction := range []struct {
			name     string
			op       func(dst, src, ivs []byte, unit int)
			from, to []byte
		}{{"encrypt", k.Encrypt, data, want}, {"decrypt", k.Decrypt, want, data}} {
			src := append(make([]byte, alignSrc), direction.from...)[alignSrc:]
			around := fill(9, alignDst+len(data)+64)
			dst := around[alignDst:][:len(data)]
			if inPlace {
				copy(dst, src)
				src = dst
			}
			chains := append(make([]byte, alignDst), ivs...)[alignDst:]
			direction.op(dst, src, chains, unit)
			if !bytes.Equal(direction.to, dst) {
				t.Fatalf("%s %s: AES-%d, %d units of %d, source +%d, target +%d, in place %t: other than the standard library",
					use.name, direction.name, 8*len(key), len(data)/unit, unit, alignSrc, alignDst, inPlace)
			}
			clean := fill(9, len(around))
			if !bytes.Equal(clean[:alignDst], around[:alignDst]) || !bytes.Equal(clean[alignDst+len(data):], around[alignDst+len(data):]) {
				t.Fatalf("%s %s: wrote outside", use.name, direction.name)
			}
			if !inPlace && !bytes.Equal(direction.from, src) || !bytes.Equal(ivs, chains) {
				t.Fatalf("%s %s: wrote to its input", use.name, direction.name)
			}
		}
	}
}

func TestAgainstTheStandardLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, bytes := range []int{16, 24, 32} {
		key := fill(byte(bytes), bytes)
		for _, unit := range []int{16, 32, 112, 128, 144, 512, 528, 1024, 2112, 4096} {
			for _, count := range []int{0, 1, 2, 7, 8, 12, 13, 16, 31, 32, 33, 71} {
				differ(t, key, fill(byte(count), unit*count), fill(byte(unit), count*Size), unit, r.IntN(64), r.IntN(64), r.IntN(2) == 0)
			}
		}
	}
}

func FuzzAgainstTheStandardLibrary(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint8(1), uint16(40), uint8(31), uint8(0), uint8(3), true)
	f.Add([]byte("seed"), uint8(2), uint16(9), uint8(255), uint8(17), uint8(0), false)
	f.Fuzz(func(t *testing.T, seed []byte, size uint8, count uint16, blocks, alignSrc, alignDst uint8, inPlace bool) {
		unit, n := (int(blocks)+1)*Size, int(count%100)
		source := rand.NewChaCha8(sha256Of(seed))
		key, data, ivs := make([]byte, 16+8*int(size%3)), make([]byte, unit*n), make([]byte, n*Size)
		source.Read(key)
		source.Read(data)
		source.Read(ivs)
		differ(t, key, data, ivs, unit, int(alignSrc%64), int(alignDst%64), inPlace)
	})
}

func sha256Of(b []byte) (seed [32]byte) {
	sum := hmac.New(sha1.New, b).Sum(nil)
	copy(seed[:], sum)
	return seed
}

// ivsOf is what HMAC-SHA1 of the standard library says.
func ivsOf(key []byte, first uint32, n int) []byte {
	var all []byte
	for i := range n {
		h := hmac.New(sha1.New, key)
		h.Write(binary.BigEndian.AppendUint32(nil, first+uint32(i)))
		all = append(all, h.Sum(nil)[:Size]...)
	}
	return all
}

func differIVs(t *testing.T, key []byte, first uint32, n, align int) {
	t.Helper()
	want := ivsOf(key, first, n)
	for _, use := range supportedIVs() {
		v := newIVKey(key, use)
		around := fill(7, align+n*Size+64)
		v.Fill(around[align:][:n*Size], first)
		clean := fill(7, len(around))
		copy(clean[align:], want)
		if !bytes.Equal(clean, around) {
			t.Fatalf("%s: key of %d bytes, %d IVs from %d, +%d: other than the standard library", use.name, len(key), n, first, align)
		}
	}
}

func TestIVsAgainstTheStandardLibrary(t *testing.T) {
	for _, size := range []int{0, 1, 20, 63, 64, 65, 200} {
		for _, first := range []uint32{0, 1, 255, 1 << 31, math.MaxUint32 - 17, math.MaxUint32} {
			for _, n := range []int{0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 64} {
				differIVs(t, fill(byte(size), size), first, n, (n+size)%64)
			}
		}
	}
}

func FuzzIVs(f *testing.F) {
	f.Add([]byte("0123456789abcdefghij"), uint32(5), uint8(33), uint8(3))
	f.Fuzz(func(t *testing.T, key []byte, first uint32, n, align uint8) {
		differIVs(t, key, first, int(n), int(align%64))
	})
}

func TestMisuse(t *testing.T) {
	k, err := NewKey(make([]byte, 16))
	require.NoError(t, err)
	b := make([]byte, 4096)
	for _, test := range []struct {
		dst, src, ivs []byte
		unit          int
		message       string
	}{
		{b, b, b, 0, "block length is not a multiple of 16"},
		{b, b, b, -16, "block length is not a multiple of 16"},
		{b, b, b, 24, "block length is not a multiple of 16"},
		{b, b[:500], b, 512, "partial block"},
		{b[:511], b[:512], b, 512, "output smaller than input"},
		{b, b[:1024], b[:31], 512, "fewer IVs than blocks"},
		{b[1:], b[:1024], b, 512, "input and output overlap"},
		{b[:1024], b[1023:2047], b, 512, "input and output overlap"},
	} {
		for _, op := range []func(dst, src, ivs []byte, unit int){k.Encrypt, k.Decrypt} {
			assert.PanicsWithValue(t, "aescbc: "+test.message, func() { op(test.dst, test.src, test.ivs, test.unit) })
		}
	}
	assert.PanicsWithValue(t, "aescbc: room for a part of an IV", func() { NewIVKey(nil).Fill(b[:17], 0) })
	for _, size := range []int{0, 15, 17, 33, 64} {
		_, err := NewKey(make([]byte, size))
		require.EqualError(t, err, fmt.Sprintf("expanding an AES key: crypto/aes: invalid key size %d", size))
	}
}

func TestWipe(t *testing.T) {
	for _, use := range supported() {
		k, err := newKey(fill(1, 32), use)
		require.NoError(t, err)
		b := make([]byte, 1024)
		k.Encrypt(b, b, b, 512)
		k.Wipe()
		assert.Equal(t, [15 * Size]byte{}, k.enc)
		assert.Equal(t, [15 * Size]byte{}, k.dec)
		assert.Nil(t, k.block)
		assert.PanicsWithValue(t, "aescbc: key was wiped", func() { k.Encrypt(b, b, b, 512) })
		assert.PanicsWithValue(t, "aescbc: key was wiped", func() { k.Decrypt(b, b, b, 512) })
	}
	for _, use := range supportedIVs() {
		v := newIVKey(fill(1, 20), use)
		v.Fill(make([]byte, 64), 0)
		v.Wipe()
		assert.Equal(t, [2][5]uint32{}, v.states)
		assert.Zero(t, bytes.Count(v.own, []byte{0})-len(v.own), "the key is not overwritten")
		assert.PanicsWithValue(t, "aescbc: key was wiped", func() { v.Fill(make([]byte, 64), 0) })
	}
}

// TestAllocations holds that no call allocates on a CPU with AES instructions.
func TestAllocations(t *testing.T) {
	b, ivs := make([]byte, 40*4096), make([]byte, 400*Size)
	for _, use := range supported() {
		if use.name == generic.name {
			continue
		}
		k, err := newKey(make([]byte, 32), use)
		require.NoError(t, err)
		for _, unit := range []int{512, 4096} {
			assert.Zero(t, testing.AllocsPerRun(5, func() { k.Encrypt(b, b, ivs, unit) }), use.name)
			assert.Zero(t, testing.AllocsPerRun(5, func() { k.Decrypt(b, b, ivs, unit) }), use.name)
		}
	}
	for _, use := range supportedIVs() {
		if use.name != genericIVs.name {
			v := newIVKey(make([]byte, 20), use)
			assert.Zero(t, testing.AllocsPerRun(5, func() { v.Fill(ivs[:33*Size], 1) }), use.name)
		}
	}
}
