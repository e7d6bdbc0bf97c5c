package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheFewestInputs(t *testing.T) {
	small := input{path: "small", size: 1, reached: blocks{"a": true, "b": true}}
	large := input{path: "large", size: 9, reached: blocks{"a": true, "b": true}}
	other := input{path: "other", size: 5, reached: blocks{"c": true}}
	known := input{path: "known", size: 1, reached: blocks{"base": true}}
	from := []input{large, known, other, small}
	assert.Equal(t, []input{small, other}, fewest(blocks{"base": true}, from, 9), "of equals the small one, none that adds nothing")
	assert.Equal(t, []input{small}, fewest(nil, from, 1), "no more than asked for, the best first")
	assert.Empty(t, fewest(nil, nil, 9))
}

func TestTheFewestReachAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 12), 0, 6), 0, 8).Draw(t, "sets")
		base := blocks{"0": true, "1": true}
		var from []input
		all := blocks{"0": true, "1": true}
		for i, set := range sets {
			in := input{path: fmt.Sprint(i), reached: blocks{}}
			for _, b := range set {
				in.reached[fmt.Sprint(b)] = true
				all[fmt.Sprint(b)] = true
			}
			from = append(from, in)
		}
		got := blocks{"0": true, "1": true}
		for _, in := range fewest(base, from, len(from)) {
			before := len(got)
			for b := range in.reached {
				got[b] = true
			}
			assert.Greater(t, len(got), before, "each one adds something")
		}
		assert.Equal(t, all, got)
	})
}

func TestAProfileIsRead(t *testing.T) {
	profile := "mode: set\nm/x.go:3.1,4.2 2 1\nm/x.go:5.1,6.2 1 0\nm/x.go:7.1,8.2 0 1\n"
	assert.Equal(t, blocks{"m/x.go:3.1,4.2": true, "m/x.go:7.1,8.2": true}, executed([]byte(profile)))
}

// A module of one function and a corpus of four inputs: the one that reaches the rare line is kept, the others are not.
func TestWhatReachesNewCodeIsKept(t *testing.T) {
	dir, corpus := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("go.mod", "module m\n\ngo 1.26\n")
	write("p/p.go", "package p\n\nfunc rare(b []byte) int {\n\tif string(b) == \"rare\" {\n\t\treturn 1\n\t}\n\treturn 0\n}\n")
	write("p/p_test.go", "package p\n\nimport \"testing\"\n\nfunc FuzzRare(f *testing.F) {\n\tf.Add([]byte{})\n\tf.Fuzz(func(t *testing.T, b []byte) {\n"+
		"\t\tif rare(b) > 1 {\n\t\t\tt.Error()\n\t\t}\n\t})\n}\n")
	for name, b := range map[string]string{"a": "rar", "b": "rare", "c": "x", "d": "rarer"} {
		write(filepath.Join(corpus, "m", "p", "FuzzRare", name), fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", b))
	}
	ctx := context.Background()
	var said bytes.Buffer
	w, err := newWorkshop(ctx, &said)
	require.NoError(t, err)
	defer os.RemoveAll(w.dir)
	w.corpus = corpus
	targets, err := find(".", nil)
	require.NoError(t, err)
	require.NoError(t, w.keepAll(ctx, targets, 9))
	kept, err := os.ReadDir("p/testdata/fuzz/FuzzRare")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	assert.Equal(t, "b", kept[0].Name())
	assert.Equal(t, "fuzzing: p FuzzRare: inputs kept: 1\n", said.String())

	require.NoError(t, w.keepAll(ctx, targets, 9))
	assert.Contains(t, said.String(), "inputs kept: 0", "what was kept is not kept again")
}
