package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	good := path("good-plan.toml")
	require.NoError(t, os.WriteFile(good, []byte(smallPlan), 0o600))
	p, warnings, err := plan.LoadAll(good)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, "good-plan", p.Name)
	p, err = plan.Load(good)
	require.NoError(t, err)
	assert.Equal(t, "small", p.Title)

	large := path("large.toml")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<30)) // a hole: a 1 GB plan that is not read
	for name, cause := range map[string]string{
		dir: "it is a directory", path("none.toml"): "no such file", large: "it holds 1073741824 bytes, plans are at most 1048576",
	} {
		_, err := plan.Load(name)
		require.ErrorContains(t, err, cause)
		assert.True(t, strings.HasPrefix(err.Error(), "reading plan "), err)
		assert.Equal(t, 1, strings.Count(err.Error(), name), "the path is named once: %v", err)
	}
	require.NoError(t, os.WriteFile(good, []byte("schema = 1\ntitel = 3\n"), 0o600))
	_, err = plan.Load(good)
	problems := &plan.Problems{}
	require.ErrorAs(t, err, &problems)
	assert.Contains(t, err.Error(), "good-plan.toml:2:1: plan: unknown key \"titel\"")
	_, _, err = plan.LoadAll(good)
	require.Error(t, err)
	_, _, err = plan.LoadAll(dir)
	require.Error(t, err)
}

func TestLoadUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser reads everything")
	}
	path := filepath.Join(t.TempDir(), "secret.toml")
	require.NoError(t, os.WriteFile(path, []byte(smallPlan), 0o000))
	_, err := plan.Load(path)
	require.ErrorContains(t, err, "permission denied")
}

func TestParseTooLarge(t *testing.T) {
	_, problems := plan.Parse("huge.toml", make([]byte, plan.MaxSize+1))
	require.Len(t, problems.Errors(), 1)
	assert.Contains(t, problems.Error(), "it holds 1048577 bytes")
}

func TestManyProblems(t *testing.T) {
	text := strings.Repeat("[[claim]]\nnonsense = 1\n", 500)
	_, problems := plan.Parse("p.toml", []byte(text))
	require.Len(t, problems.Items, 100)
	assert.Contains(t, problems.Items[99].Hint, "more problems are not shown")
}

// TestDeepAndWide feeds what could make a careless reader slow or overflow.
func TestDeepAndWide(t *testing.T) {
	var wide strings.Builder
	keys := 15000
	if os.Getenv("DMGBENCH_LONG") != "" {
		keys = 60000 // the time to look for keys given twice is quadratic
	}
	for i := range keys {
		wide.WriteString("k")
		wide.WriteString(strings.Repeat("x", i%7))
		wide.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26)))
		wide.WriteString("=1\n")
	}
	for _, text := range []string{strings.Repeat("[", 5000), "a=" + strings.Repeat("[", 100000), "a=" + strings.Repeat("{a=", 100000), wide.String(), strings.Repeat("a.", 100000) + "a=1", "[" + strings.Repeat("a.", 100000) + "a]"} {
		_, problems := plan.Parse("p.toml", []byte(text))
		assert.NotEmpty(t, problems.Errors())
	}
}
