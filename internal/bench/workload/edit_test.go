package workload

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// editRig is a volume with one file, and what the file contained.
func editRig(size int64) (*fakeVolume, []Item, []byte, Options) {
	v := newFake()
	data := NewData(1, 1, "case", DataRandom, 0)
	old := make([]byte, size)
	data.FillAt(old, KeyOf("f"), 0)
	v.files["f"] = &fakeBody{data: bytes.Clone(old)}
	return v, []Item{{Name: "f", Size: size}}, old, Options{Clock: v.clock, Data: data, Sync: hostio.SyncFull}
}

func TestEditsChangeWhatTheirKindSays(t *testing.T) {
	const size = 3<<20 + 100 // the last block has 100 bytes
	for _, tt := range []struct {
		edit    Edit
		changed int64 // bytes
		grown   int64
		kept    func(t *testing.T, old, now []byte)
	}{
		{Edit{Kind: EditOverwrite, Share: 0.01}, 8 * 4096, 0, func(t *testing.T, old, now []byte) {
			assert.Equal(t, 8, differentBlocks(old, now))
		}},
		{Edit{Kind: EditOverwrite, Share: 1e-9}, 4096, 0, func(t *testing.T, old, now []byte) {
			assert.Equal(t, 1, differentBlocks(old, now))
		}},
		{Edit{Kind: EditOverwrite, Share: 1}, size, 0, func(t *testing.T, old, now []byte) {
			assert.Equal(t, 769, differentBlocks(old, now))
		}},
		{Edit{Kind: EditAppend, Amount: 2<<20 + 1}, 2<<20 + 1, 2<<20 + 1, func(t *testing.T, old, now []byte) {
			assert.True(t, bytes.HasPrefix(now, old))
			assert.NotEqual(t, make([]byte, 100), now[len(now)-100:])
		}},
		{Edit{Kind: EditInsert, Amount: 7}, 7, 7, func(t *testing.T, old, now []byte) {
			assert.True(t, bytes.HasSuffix(now, old))
			assert.NotEqual(t, old[:7], now[:7])
		}},
		{Edit{Kind: EditReplace, Share: 0.01}, 8 * 4096, 0, func(t *testing.T, old, now []byte) {
			assert.Equal(t, 8, differentBlocks(old, now))
		}},
	} {
		t.Run(tt.edit.Kind, func(t *testing.T) {
			v, items, old, o := editRig(size)
			edited, out, err := EditFiles(t.Context(), v, items, tt.edit, Key{Seed: 1, Round: 1, Batch: 1}, o)
			require.NoError(t, err)
			assert.Equal(t, tt.changed, out.Bytes)
			written := tt.changed
			if tt.edit.Kind == EditInsert || tt.edit.Kind == EditReplace {
				written += size // what is written again further on, or elsewhere
			}
			assert.Equal(t, written, out.Written)
			assert.EqualValues(t, size, items[0].Size, "the items given are not changed")
			assert.Equal(t, size+tt.grown, edited[0].Size)
			require.Len(t, v.files, 1)
			now := v.files["f"].data
			require.Len(t, now, int(edited[0].Size))
			tt.kept(t, old, now)
			log := strings.Join(v.log, "\n")
			assert.Contains(t, log, "sync f")
			assert.True(t, strings.HasSuffix(log, "volume sync"))
			assert.Equal(t, strings.Count(log, "open ")+strings.Count(log, "create "), strings.Count(log, "close "))
		})
	}
}

func differentBlocks(a, b []byte) (n int) {
	for at := 0; at < len(a); at += editBlock {
		end := min(at+editBlock, len(a))
		if !bytes.Equal(a[at:end], b[at:end]) {
			n++
		}
	}
	return n
}

// Rounds change other places, and the same round of another case the same.
func TestPlacesOfEditsFollowTheKey(t *testing.T) {
	edited := func(round int) []byte {
		v, items, _, o := editRig(1 << 20)
		_, _, err := EditFiles(t.Context(), v, items, Edit{Kind: EditOverwrite, Share: 0.02}, Key{Seed: 1, Round: round}, o)
		require.NoError(t, err)
		return v.files["f"].data
	}
	assert.Equal(t, edited(1), edited(1))
	assert.NotEqual(t, edited(1), edited(2))
}

func TestPickedFilesFollowTheKey(t *testing.T) {
	var items []Item
	for i := range 100 {
		items = append(items, Item{Name: string(rune('a' + i)), Batch: 1, Set: 1, Index: i})
	}
	first := Pick(items, 10, Key{Seed: 1, Round: 1})
	assert.Len(t, first, 10)
	assert.Equal(t, first, Pick(ReadOrder(items, OrderShuffled, Key{Seed: 9}), 10, Key{Seed: 1, Round: 1}))
	assert.NotEqual(t, first, Pick(items, 10, Key{Seed: 1, Round: 2}))
	assert.ElementsMatch(t, items, Pick(items, 1000, Key{}))
}

func TestEditsThatFail(t *testing.T) {
	broken := errors.New("broken")
	fails := func(string) error { return broken }
	for name, tt := range map[string]struct {
		edit  Edit
		spoil func(v *fakeVolume)
	}{
		"opening":            {Edit{Kind: EditAppend, Amount: 1}, func(v *fakeVolume) { v.failOpen = fails }},
		"writing blocks":     {Edit{Kind: EditOverwrite, Share: 1}, func(v *fakeVolume) { v.failWrite = failAt(broken, 1) }},
		"appending":          {Edit{Kind: EditAppend, Amount: 2 << 20}, func(v *fakeVolume) { v.failWrite = failAt(broken, 2) }},
		"moving":             {Edit{Kind: EditInsert, Amount: 1}, func(v *fakeVolume) { v.failWrite = failAt(broken, 1) }},
		"inserting":          {Edit{Kind: EditInsert, Amount: 1}, func(v *fakeVolume) { v.failWrite = failAt(broken, 2) }},
		"writing the copy":   {Edit{Kind: EditReplace, Share: 1}, func(v *fakeVolume) { v.failWrite = failAt(broken, 1) }},
		"changing the copy":  {Edit{Kind: EditReplace, Share: 1}, func(v *fakeVolume) { v.failWrite = failAt(broken, 2) }},
		"flushing":           {Edit{Kind: EditAppend, Amount: 1}, func(v *fakeVolume) { v.failSync = fails }},
		"flushing the copy":  {Edit{Kind: EditReplace, Share: 1}, func(v *fakeVolume) { v.failSync = fails }},
		"closing":            {Edit{Kind: EditAppend, Amount: 1}, func(v *fakeVolume) { v.failClose = fails }},
		"closing the copy":   {Edit{Kind: EditReplace, Share: 1}, func(v *fakeVolume) { v.failClose = fails }},
		"reading to the end": {Edit{Kind: EditInsert, Amount: 1}, func(v *fakeVolume) { v.files["f"].data = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			v, items, _, o := editRig(1000)
			tt.spoil(v)
			_, _, err := EditFiles(t.Context(), v, items, tt.edit, Key{}, o)
			require.ErrorContains(t, err, `editing file "f": `)
			if name != "reading to the end" {
				assert.ErrorIs(t, err, broken)
			}
			assert.NotContains(t, v.files, "f.new", "the copy is removed")
			assert.Contains(t, v.files, "f")
		})
	}
	v, items, _, o := editRig(1000)
	items[0].Name = "missing"
	_, _, err := EditFiles(t.Context(), v, items, Edit{Kind: EditAppend, Amount: 1}, Key{}, o)
	require.ErrorIs(t, err, fs.ErrNotExist)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	_, _, err = EditFiles(ctx, v, items, Edit{Kind: EditAppend, Amount: 1}, Key{}, o)
	require.ErrorIs(t, err, broken)
}

// failAt fails the n-th write.
func failAt(err error, n int) func(string, int64) error {
	return func(string, int64) error {
		if n--; n == 0 {
			return err
		}
		return nil
	}
}

func TestEditWithoutFlush(t *testing.T) {
	v, items, _, o := editRig(1000)
	o.Sync = hostio.SyncNone
	_, _, err := EditFiles(t.Context(), v, items, Edit{Kind: EditAppend, Amount: 1}, Key{}, o)
	require.NoError(t, err)
	assert.NotContains(t, v.log, "sync f")
}
