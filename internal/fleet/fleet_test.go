package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"a", "mac", "mac-2", "0", strings.Repeat("x", 32)} {
		assert.NoError(t, CheckMachine(name), name)
	}
	// Wildcards, separators and names of folders would change what a subject or a path means.
	for _, name := range []string{"", "Mac", "CONTROL", "-a", "a-", "a.b", "a*", "*", ">", "a b", "a/b", "..", "a\n", "\u00e4", "a_b",
		strings.Repeat("x", 33)} {
		assert.ErrorContains(t, CheckMachine(name), "machine name", name)
	}
	for _, id := range []string{"a", "J-1", strings.Repeat("x", 64)} {
		assert.NoError(t, CheckJob(id), id)
	}
	for _, id := range []string{"", "-a", "a.b", "*", ">", "..", "a/b", "a b", "a\n", strings.Repeat("x", 65)} {
		assert.ErrorContains(t, CheckJob(id), "want 1 to 64", id)
	}
}

func TestMessages(t *testing.T) {
	want := Job{ID: "j", Plan: "quick", Text: "x", Options: Options{Only: []string{"a"}}}
	data, err := Encode(want)
	require.NoError(t, err)
	got, err := Decode[Job](data)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	_, err = Encode(Job{Text: strings.Repeat("x", MaxMessage)})
	require.ErrorContains(t, err, "want at most 524288")
	_, err = Decode[Job](make([]byte, MaxMessage+1))
	require.ErrorContains(t, err, "want at most 524288")
	for _, text := range []string{"", "[]", "{", `{"id":1}`, `{"every_ns":"x"}`, `"x"`} {
		_, err = Decode[Job]([]byte(text))
		assert.ErrorContains(t, err, "decoding a message", text)
	}
}

// No subject that one machine may use matches one of another.
func TestPermissionsAreDisjoint(t *testing.T) {
	for _, names := range [][2]string{{"a", "b"}, {"mac", "mac-2"}, {"fleet", "job"}} {
		publish, subscribe := Permissions(names[0])
		otherPublish, otherSubscribe := Permissions(names[1])
		for _, mine := range append(publish, subscribe...) {
			for _, theirs := range append(otherPublish, otherSubscribe...) {
				assert.False(t, overlap(strings.Split(mine, "."), strings.Split(theirs, ".")), "%s and %s", mine, theirs)
			}
		}
	}
	assert.True(t, overlap([]string{"a", "*", "c"}, []string{"a", ">"}))
}

// overlap reports whether a subject can match both patterns.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] == ">" || b[i] == ">" {
			return true
		}
		if a[i] != b[i] && a[i] != "*" && b[i] != "*" {
			return false
		}
	}
	return len(a) == len(b)
}
