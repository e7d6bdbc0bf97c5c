package imagetool

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/manpage"
)

// TestTable: the table is sound, and help and manual page have every verb and option of it.
func TestTable(t *testing.T) {
	page := manualPage()
	seen := map[string]bool{}
	for _, v := range verbs {
		require.NotNil(t, v.run, v.Name)
		for _, n := range v.names {
			assert.False(t, seen[v.tool+" "+n], "%s twice", n)
			seen[v.tool+" "+n] = true
		}
		assert.NotEmpty(t, v.Short, v.Name)
		assert.GreaterOrEqual(t, v.max, v.min, v.Name)
		assert.GreaterOrEqual(t, len(strings.Fields(v.operands)), v.min, v.Name)
		assert.Contains(t, page, manpage.Escape(v.Usage()), "manual page")
		help := (&call{env: Env{}.withDefaults()}).helpText(v)
		words := map[string]bool{}
		for _, o := range v.Options {
			for _, w := range o.names {
				assert.True(t, strings.HasPrefix(w, "-"), w)
				assert.False(t, words[w], "%s: %s twice", v.Name, w)
				words[w] = true
				assert.Contains(t, page, manpage.Escape(w), "manual page, %s", v.Name)
				assert.Equal(t, o.Support != refused, strings.Contains(help, "\t"+w) || strings.Contains(help, ", "+w), "help of %s: %s", v.Name, w)
			}
			assert.NotEmpty(t, o.Help, "%s %s", v.Name, o.names[0])
			assert.False(t, strings.HasSuffix(o.Help, "."), "%s %s ends in a full stop", v.Name, o.names[0])
		}
	}
	for _, v := range unsupportedVerbs {
		assert.False(t, seen["hdiutil "+v], "%s is there and is not", v)
	}
	for _, required := range strings.Fields("create attach mount detach eject info imageinfo compact resize convert verify checksum isencrypted chpass unmount mountvol pmap help") {
		assert.True(t, seen["hdiutil "+required], required)
	}
	for line := range strings.Lines(page) {
		assert.False(t, strings.HasPrefix(line, "'"), "a line that roff takes for a request: %s", line)
	}
}

// TestEveryOption: each option of each verb is accepted, ignored or refused as the table says, before and behind operands.
func TestEveryOption(t *testing.T) {
	for _, v := range verbs {
		words := strings.Fields(v.Name)
		operands := slices.Repeat([]string{"x"}, v.min)
		for _, o := range v.Options {
			for _, name := range o.names {
				option := []string{name}
				if o.arg != "" && !o.optional {
					value := "v"
					if o.values != nil {
						value = o.values[0]
					}
					option = append(option, value)
				}
				for _, line := range [][]string{slices.Concat(words, option, operands), slices.Concat(words, operands, option)} {
					c := &call{env: Env{}.withDefaults(), tool: v.tool, out: bufio.NewWriter(io.Discard), err: io.Discard}
					err := c.parse(line)
					if o.Support == refused {
						var r *refusal
						require.ErrorAs(t, err, &r, "%v", line)
						assert.False(t, r.usage, "%v", line)
						continue
					}
					require.NoError(t, err, "%v", line)
					if !strings.Contains(name, "help") && name != "-h" {
						assert.True(t, c.has(o.key()), "%v", line)
						assert.Equal(t, operands, append([]string{}, c.operands...), "%v", line)
					}
				}
				if len(option) > 1 {
					c := &call{env: Env{}.withDefaults(), tool: v.tool, out: bufio.NewWriter(io.Discard), err: io.Discard}
					var r *refusal
					require.ErrorAs(t, c.parse(slices.Concat(words, operands, option[:1])), &r, "%s without a value", name)
				}
			}
		}
	}
}

func TestGrammar(t *testing.T) {
	m := newMachine(t)
	for _, test := range []struct {
		status    int
		out, errs string
		args      []string
	}{
		{1, "", "hdiutil: no verb given\nUsage: hdiutil <verb>", nil},
		{1, "", "hdiutil: unrecognized verb \"frob\"", []string{"frob"}},
		{1, "", "hdiutil: segment failed - the verb segment of Apple's hdiutil is not supported\n", []string{"segment", "-o", "x"}},
		{1, "", "diskutil: did not recognize verb \"list\"\nUsage: diskutil <verb> <options>\n<verb> is one of: image create blank, image create from, image attach,", []string{"diskutil", "list"}},
		{1, "", "diskutil: did not recognize verb \"image frob\"", []string{"diskutil", "image", "frob"}},
		{0, "<verb> is one of:", "", []string{"help"}},
		{0, "<verb> is one of:", "", []string{"-help"}},
		{0, "Usage: hdiutil attach", "", []string{"help", "mount"}},
		{0, "Usage: hdiutil attach", "", []string{"attach", "x", "-help", "-frob"}},
		{0, "Usage: diskutil image create blank", "", []string{"diskutil", "image", "create", "blank", "--help"}},
		{0, "Usage: diskutil image resize", "", []string{"diskutil", "help", "image", "resize"}},
		{1, "", "unknown verb \"frob\"", []string{"help", "frob"}},
		{1, "", "unrecognized option `--plist'", []string{"info", "--plist"}},
		{1, "", "unrecognized option `-plist'", []string{"diskutil", "image", "info", "-plist", "x"}},
		{1, "", "option --noMount takes no value", []string{"diskutil", "image", "attach", "--noMount=yes", "x"}},
		{1, "", "hdiutil: imageinfo failed - No such file or directory\n", []string{"imageinfo", "--", "-plist"}},
		{1, "", "hdiutil: imageinfo failed - No such file or directory\n", []string{"imageinfo", ""}},
		{1, "", "hdiutil: imageinfo failed - No such file or directory\n", []string{"imageinfo", "-"}},
		{1, "", "option -encryption: \"AES-512\" is none of AES-128, AES-256\n", []string{"create", "-size", "1m", "-encryption", "AES-512", "-stdinpass", "x"}},
		{1, "", "option -encryption: \"aes256\" is none of AES-128, AES-256\n", []string{"convert", "-encryption", "aes256", "x"}},
		{1, "", "want -stdinpass\n", []string{"create", "-size", "1m", "-layout", "NONE", "-encryption", "aes-256", "x"}},
		{1, "", "want -stdinpass\n", []string{"create", "-size", "1m", "-layout", "NONE", "-encryption", "aesop"}},
	} {
		assert.Equal(t, test.status, m.run(test.args...), "%q", test.args)
		assert.Contains(t, m.out, test.out, "%q", test.args)
		assert.Contains(t, m.err, test.errs, "%q", test.args)
		assert.Equal(t, test.errs == "", m.err == "", "%q said %s", test.args, m.err)
	}
}

func TestQuietAndVerbose(t *testing.T) {
	m := newMachine(t)
	assert.Empty(t, m.do("create -quiet -size 8m a"))
	m.refused(1, "", "create -quiet -size 8m a")
	assert.Empty(t, m.err)
	m.refused(1, "File exists", "create -quiet -verbose -size 8m a")
	m.refused(1, "File exists", "create -debug -quiet -size 8m a")
}

// FuzzArguments: whatever the words, the grammar answers, and only with its statuses.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"create -size 1m -fs ExFAT a", "attach -nomount -- -x", "diskutil image --plist create blank --size=1M a",
		"resize -limits a", "help create", "convert a -format UDSB -o b", "checksum -type SHA a", "diskutil -h", "-help", "ls a -l"} {
		f.Add(strings.ReplaceAll(s, " ", "\x00"))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		c := &call{env: Env{Dir: dir}.withDefaults(), tool: "hdiutil", out: bufio.NewWriter(io.Discard), err: io.Discard}
		if args[0] == "diskutil" {
			c.tool, args = "diskutil", args[1:]
		}
		var said bytes.Buffer
		err := c.parse(args)
		c.err = &said
		switch status := c.reportError(err); {
		case err == nil && status != 0, err != nil && status != 1:
			t.Errorf("%q: status %d for %v", args, status, err)
		case err != nil && said.Len() == 0:
			t.Errorf("%q: nothing is said of %v", args, err)
		case err == nil && (len(c.operands) < c.verb.min || c.verb.max > 0 && len(c.operands) > c.verb.max):
			t.Errorf("%q: %d operands", args, len(c.operands))
		}
	})
}

// TestManualPage holds the page in docs against the table.
func TestManualPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/hdiutil.1")
	require.NoError(t, err)
	assert.Equal(t, manualPage(), string(page), "make it anew: go run ./cmd/hdiutil man > docs/hdiutil.1")
}
