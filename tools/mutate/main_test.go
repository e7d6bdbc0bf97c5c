package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindMutations(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.go")
	const source = `package x

func f(a, b int) (n int, err error) {
	n = a + b
	if a < b {
		n++
		g()
	}
	return n, err
}
`
	require.NoError(t, os.WriteFile(name, []byte(source), 0o600))
	all, err := findMutations(name)
	require.NoError(t, err)
	var texts []string
	for _, m := range all {
		texts = append(texts, m.text)
		assert.NotEqual(t, source, string(m.source))
	}
	assert.Equal(t, []string{`"n = a + b" → ""`, `"+" → "-"`, `"a < b" → "!(a < b)"`, `"<" → "<="`, `"n++" → ""`, `"g()" → ""`,
		`"err" → "nil"`}, texts)
	assert.Equal(t, 6, all[4].line)
}
