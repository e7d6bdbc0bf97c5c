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

func TestParsePlist(t *testing.T) {
	d, err := ParsePlist([]byte(wrap(`<dict>
	<key>s</key><string>a &lt;b&gt; ✓</string><key>n</key><integer>42</integer><key>neg</key><integer>-3</integer>
	<key>huge</key><integer>18446744073709551615</integer><key>yes</key><true/><key>no</key><false/>
	<key>r</key><real>1.5</real><key>d</key><dict><key>x</key><integer>1</integer></dict>
	<key>list</key><array><dict><key>a</key><string>1</string></dict><string>stray</string><dict/></array></dict>`)))
	require.NoError(t, err)
	assert.Equal(t, "a <b> ✓", d.String("s"))
	assert.Equal(t, "", d.String("n"), "another type")
	assert.EqualValues(t, 42, d.Int("n"))
	assert.Zero(t, d.Int("neg"))
	assert.Zero(t, d.Int("huge"), "beyond int64")
	assert.Zero(t, d.Int("missing"))
	assert.True(t, d.Bool("yes"))
	assert.False(t, d.Bool("no"))
	assert.False(t, d.Bool("missing"))
	assert.EqualValues(t, 1, d.Dict("d").Int("x"))
	assert.Empty(t, d.Dict("missing").Dict("deeper").String("still"))
	assert.Len(t, d.Dicts("list"), 2)
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
		"before":          "junk" + wrap(`<dict/>`),
		"no value":        wrap(`<dict><key>a</key></dict>`),
		"no key":          wrap(`<dict><string>a</string></dict>`),
		"two keys":        wrap(`<dict><key>a</key><key>b</key></dict>`),
		"unknown element": wrap(`<dict><key>a</key><blob/></dict>`),
		"empty integer":   wrap(`<dict><key>a</key><integer/></dict>`),
		"bad integer":     wrap(`<dict><key>a</key><integer>x</integer></dict>`),
		"bad date":        wrap(`<dict><key>a</key><date>x</date></dict>`),
		"bad data":        wrap(`<dict><key>a</key><data>***</data></dict>`),
		"html":            "<html><body/></html>",
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParsePlist([]byte(text))
			require.Error(t, err)
			assert.Nil(t, d)
			if strings.TrimSpace(text) == "" {
				require.ErrorIs(t, err, ErrNoPlist)
			} else {
				require.ErrorIs(t, err, ErrBadPlist)
			}
		})
	}
}

// The deepest list that the bound on its length allows does not exhaust the stack.
func TestParseDeepestPlist(t *testing.T) {
	n := (MaxPlist - 200) / len("<array></array>")
	_, err := ParsePlist([]byte(wrap("<dict><key>a</key>" + strings.Repeat("<array>", n) + strings.Repeat("</array>", n) + "</dict>")))
	require.NoError(t, err)
	_, err = ParsePlist([]byte(wrap("<dict/>" + strings.Repeat(" ", MaxPlist))))
	require.ErrorIs(t, err, ErrBadPlist)
	_, err = ParsePlist([]byte("<plist><dict>" + strings.Repeat("<array>", MaxPlist/len("<array>")-10)))
	require.ErrorIs(t, err, ErrBadPlist)
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
			d, around, err := findPlist([]byte(text))
			require.NoError(t, err)
			assert.Equal(t, "1", d.String("a"))
			assert.LessOrEqual(t, len(around), len(text))
		})
	}
	_, around, err := findPlist([]byte("created: /x\n"))
	require.ErrorIs(t, err, ErrNoPlist)
	assert.Equal(t, "created: /x\n", around)
	for cut := len(head); cut < len(good); cut++ {
		_, _, err := findPlist([]byte(good[:cut]))
		require.ErrorIs(t, err, ErrBadPlist, "cut at %d", cut)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(wrap(`<dict><key>a</key><array><true/></array></dict>`)))
	f.Add([]byte("licence" + wrap(`<dict/>`) + "tail"))
	f.Add([]byte("bplist00"))
	f.Add([]byte(wrap(`<dict><key>CF$UID</key><integer>1</integer></dict>`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, around, err := findPlist(text)
		if err != nil {
			if d != nil || around != string(text) {
				t.Fatal("a result with an error")
			}
			return
		}
		if d == nil || len(around) >= len(text) {
			t.Fatal("no result without an error")
		}
	})
}
