package hdiutil

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

func TestReleaseDetachesWhatLiesInTheFolderAndNothingElse(t *testing.T) {
	r := newRig(t, FakeConfig{Rules: []FakeRule{{Verb: "detach", From: 1, To: 1, Do: "busy"}}})
	a, b := r.create("a", spec("UDRW")), r.create("b", spec("UDSB"))
	r.attach(a, engine.AttachOptions{NoMount: true})
	r.attach(b, engine.AttachOptions{})
	names, err := r.e.Release(t.Context(), t.TempDir())
	require.NoError(t, err)
	assert.Empty(t, names)
	require.Len(t, r.attached(), 2, "other folders are none of our business")
	names, err = r.e.Release(t.Context(), filepath.Join(r.dir.Path(), "b.sparsebundle-not"))
	require.NoError(t, err)
	assert.Empty(t, names)
	names, err = r.e.Release(t.Context(), r.dir.Path())
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"a.dmg", "b.sparsebundle"}, names)
	assert.Empty(t, r.attached())
	r.attach(r.create("c", spec("UDRW")), engine.AttachOptions{})
	names, err = r.e.Release(t.Context(), r.e.o.WorkDir)
	require.NoError(t, err)
	assert.Equal(t, []string{"c.dmg"}, names, "mounted below the folder")
}

// Tools print names with links followed, command lines have those that the run was given: on a Mac every name below
// /tmp and /var has two.
func TestReleaseByAnyNameOfTheFolder(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "none"}))
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.Symlink(r.dir.Path(), other))
	looks := 0
	r.e.host.CommandLines = func(context.Context) []string {
		if looks++; looks == 1 {
			return []string{"/usr/bin/hdiutil attach " + filepath.Join(other, "a.dmg")}
		}
		return nil
	}
	r.attach(r.create("a", spec("UDRW")), engine.AttachOptions{})
	names, err := r.e.Release(t.Context(), other)
	require.NoError(t, err)
	assert.Equal(t, []string{"a.dmg"}, names, "the tool names the folder, we its link")
	assert.Equal(t, 2, looks, "the tool that ran was waited for")

	r.tool.Occupy(filepath.Join(other, "a.dmg"), "")
	names, err = r.e.Release(t.Context(), r.dir.Path())
	require.NoError(t, err)
	assert.Equal(t, []string{"a.dmg"}, names, "the tool names the link, we the folder")
	assert.Empty(t, r.attached())
}

// Apple's list may lack images while others come and go.
func TestReleaseWhereTheListIsCutShort(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "info", From: 1, To: 1, Do: "short"}))
	r.attach(r.create("a", spec("UDRW")), engine.AttachOptions{})
	names, err := r.e.Release(t.Context(), r.dir.Path())
	require.NoError(t, err)
	assert.Equal(t, []string{"a.dmg"}, names)
	assert.Empty(t, r.attached())
}

func TestReleaseOfWhatStaysIsAnError(t *testing.T) {
	r := newRig(t, FakeConfig{Rules: []FakeRule{
		{Verb: "detach", From: 1, Do: "busy"}, {Verb: "eject", From: 1, Do: "fail", Text: "no", Status: 1}}})
	r.attach(r.create("a", spec("UDRW")), engine.AttachOptions{})
	names, err := r.e.Release(t.Context(), r.dir.Path())
	require.Error(t, err)
	assert.Empty(t, names)
	assert.Contains(t, r.last("detach"), "-force")
}

// Where hdiutil is busy diskutil is asked before anything is forced: force may lose what was not written yet.
func TestReleaseEjectsBeforeItForces(t *testing.T) {
	r := newRig(t, FakeConfig{Rules: []FakeRule{{Verb: "detach", From: 1, Do: "busy"}}})
	r.attach(r.create("a", spec("UDRW")), engine.AttachOptions{})
	names, err := r.e.Release(t.Context(), r.dir.Path())
	require.NoError(t, err)
	assert.Equal(t, []string{"a.dmg"}, names)
	assert.NotContains(t, r.last("detach"), "-force")
}

func TestReleaseWithoutATool(t *testing.T) {
	names, err := Release(t.Context(), Options{Hdiutil: []string{filepath.Join(t.TempDir(), "none")}, Vendor: "Apple"}, t.TempDir())
	require.NoError(t, err)
	assert.Empty(t, names)
}
