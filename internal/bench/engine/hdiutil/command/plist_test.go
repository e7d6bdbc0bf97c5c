package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const head = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
`

func wrap(body string) string { return head + `<plist version="1.0">` + body + `</plist>` }

// odd is a dictionary of the tests.
type odd struct {
	S    string            `plist:"s"`
	N    int64             `plist:"n"`
	Yes  bool              `plist:"yes"`
	D    struct{ X int64 } `plist:"d"`
	List []struct {
		A string `plist:"a"`
	} `plist:"list"`
	Missing string `plist:"missing"`
}

func TestParsePlist(t *testing.T) {
	d, err := findPlist[odd]([]byte(wrap(`<dict>
	<key>s</key><string>a &lt;b&gt; ✓</string><key>n</key><integer>42</integer>
	<key>yes</key><true/><key>no</key><false/><key>r</key><real>1.5</real><key>d</key><dict><key>X</key><integer>1</integer></dict>
	<key>list</key><array><dict><key>a</key><string>1</string></dict><dict/></array></dict>`)))
	require.NoError(t, err)
	assert.Equal(t, "a <b> ✓", d.S)
	assert.EqualValues(t, 42, d.N)
	assert.True(t, d.Yes)
	assert.EqualValues(t, 1, d.D.X)
	require.Len(t, d.List, 2)
	assert.Equal(t, "1", d.List[0].A)
	assert.Empty(t, d.Missing)
}

// What is no list in XML, has another root than a dictionary or lacks a value is an error, without a panic of the library.
func TestParsePlistRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty":           "",
		"blank":           " \n",
		"words":           "no property list",
		"openstep":        `{ a = b; }`,
		"binary":          "bplist00\xd0",
		"array root":      wrap(`<array/>`),
		"string root":     wrap(`<string>x</string>`),
		"no root":         wrap(``),
		"cut":             wrap(`<dict><key>a</key>`)[:100],
		"no value":        wrap(`<dict><key>a</key></dict>`),
		"no key":          wrap(`<dict><string>a</string></dict>`),
		"two keys":        wrap(`<dict><key>a</key><key>b</key></dict>`),
		"unknown element": wrap(`<dict><key>a</key><blob/></dict>`),
		"empty integer":   wrap(`<dict><key>a</key><integer/></dict>`),
		"bad integer":     wrap(`<dict><key>a</key><integer>x</integer></dict>`),
		"bad date":        wrap(`<dict><key>a</key><date>x</date></dict>`),
		"bad data":        wrap(`<dict><key>a</key><data>***</data></dict>`),
		"html":            "<html><body/></html>",
		"another type":    wrap(`<dict><key>s</key><integer>1</integer></dict>`),
	} {
		t.Run(name, func(t *testing.T) {
			d, err := findPlist[odd]([]byte(text))
			require.Error(t, err)
			assert.Zero(t, d)
			require.ErrorIs(t, err, ErrNoResult)
		})
	}
}

// The deepest list that the bound on its length allows does not exhaust the stack.
func TestParseDeepestPlist(t *testing.T) {
	n := (maxPlist - 200) / len("<array></array>")
	_, err := findPlist[odd]([]byte(wrap("<dict><key>a</key>" + strings.Repeat("<array>", n) + strings.Repeat("</array>", n) + "</dict>")))
	require.NoError(t, err)
	_, err = findPlist[odd]([]byte(wrap("<dict/>" + strings.Repeat(" ", maxPlist))))
	require.ErrorIs(t, err, ErrNoResult)
	_, err = findPlist[odd]([]byte("<plist><dict>" + strings.Repeat("<array>", maxPlist/len("<array>")-10)))
	require.ErrorIs(t, err, ErrNoResult)
}

// first is what the tests look for in a text.
type first struct {
	A string `plist:"a"`
}

func TestFindPlist(t *testing.T) {
	good := wrap(`<dict><key>a</key><string>1</string></dict>`)
	for name, text := range map[string]string{
		"plain":            good,
		"newline":          good + "\n",
		"licence before":   "You agree to <?xml all of this> …\nAgree Y/N? " + good,
		"lines around":     "hdiutil: WARNING: something\n" + good + "\nexpected CRC32 $1\n",
		"without header":   `<plist version="1.0"><dict><key>a</key><string>1</string></dict></plist>`,
		"another one":      good + good,
		"array before":     wrap("<array/>") + good,
		"licence in plist": "text about <plist files> " + good,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := findPlist[first]([]byte(text))
			require.NoError(t, err)
			assert.Equal(t, "1", d.A)
		})
	}
	_, err := findPlist[first]([]byte("created: /x\n"))
	require.ErrorIs(t, err, ErrNoResult)
	for cut := len(head); cut < len(good); cut++ {
		_, err := findPlist[first]([]byte(good[:cut]))
		require.ErrorIs(t, err, ErrNoResult, "cut at %d", cut)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(wrap(`<dict><key>a</key><array><true/></array></dict>`)))
	f.Add([]byte("licence" + wrap(`<dict/>`) + "tail"))
	f.Add([]byte("bplist00"))
	f.Add([]byte(wrap(`<dict><key>CF$UID</key><integer>1</integer></dict>`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := findPlist[first](text); err != nil && d != (first{}) {
			t.Fatal("a result with an error")
		}
	})
}
