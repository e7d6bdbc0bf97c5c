package plist_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine/hdiutil/parse/plist"
)

const head = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
`

func wrap(body string) string { return head + `<plist version="1.0">` + body + `</plist>` }

func TestParse(t *testing.T) {
	d, err := plist.Parse([]byte(wrap(`<dict>
	<key>s</key><string>a &lt;b&gt; ✓</string><key>n</key><integer>42</integer><key>neg</key><integer>-3</integer>
	<key>huge</key><integer>18446744073709551615</integer><key>yes</key><true/><key>no</key><false/><key>word</key><string>yes</string>
	<key>r</key><real>1.5</real><key>d</key><dict><key>x</key><integer>1</integer></dict>
	<key>list</key><array><dict><key>a</key><string>1</string></dict><string>stray</string><dict/></array></dict>`)))
	require.NoError(t, err)
	assert.Equal(t, "a <b> ✓", d.String("s"))
	assert.Equal(t, "", d.String("n"), "another type")
	n, ok := d.Int("n")
	assert.True(t, ok)
	assert.EqualValues(t, 42, n)
	n, ok = d.Int("neg")
	assert.True(t, ok)
	assert.EqualValues(t, -3, n)
	_, ok = d.Int("huge")
	assert.False(t, ok, "beyond int64")
	_, ok = d.Int("missing")
	assert.False(t, ok)
	assert.True(t, d.Bool("yes"))
	assert.True(t, d.Bool("word"))
	assert.False(t, d.Bool("no"))
	assert.False(t, d.Bool("missing"))
	x, _ := d.Dict("d").Int("x")
	assert.EqualValues(t, 1, x)
	assert.Empty(t, d.Dict("missing").Dict("deeper").String("still"))
	assert.Len(t, d.Dicts("list"), 2)
}

// Whatever the library lets through or falls over is an error here.
func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("<array>", 100) + strings.Repeat("</array>", 100)
	for name, text := range map[string]string{
		"empty":           "",
		"blank":           " \n",
		"words":           "no property list",
		"openstep":        `{ a = b; }`,
		"binary":          "bplist00\xd0",
		"array root":      wrap(`<array/>`),
		"string root":     wrap(`<string>x</string>`),
		"no root":         wrap(``),
		"two roots":       wrap(`<dict/><dict/>`),
		"cut":             wrap(`<dict><key>a</key>`)[:100],
		"behind":          wrap(`<dict/>`) + "junk",
		"second list":     wrap(`<dict/>`) + `<plist><dict/></plist>`,
		"before":          "junk" + wrap(`<dict/>`),
		"no value":        wrap(`<dict><key>a</key></dict>`),
		"no key":          wrap(`<dict><string>a</string></dict>`),
		"two keys":        wrap(`<dict><key>a</key><key>b</key></dict>`),
		"unknown element": wrap(`<dict><key>a</key><blob/></dict>`),
		"empty integer":   wrap(`<dict><key>a</key><integer/></dict>`),
		"bad integer":     wrap(`<dict><key>a</key><integer>x</integer></dict>`),
		"bad date":        wrap(`<dict><key>a</key><date>x</date></dict>`),
		"bad data":        wrap(`<dict><key>a</key><data>***</data></dict>`),
		"deep":            wrap(`<dict><key>a</key>` + deep + `</dict>`),
		"text in dict":    wrap(`<dict>word</dict>`),
		"inside string":   wrap(`<dict><key>a</key><string>x<dict/></string></dict>`),
		"plist in plist":  wrap(`<dict><key>a</key><plist><dict/></plist></dict>`),
		"html":            "<html><body/></html>",
	} {
		t.Run(name, func(t *testing.T) {
			d, err := plist.Parse([]byte(text))
			require.Error(t, err)
			assert.Nil(t, d)
			if strings.TrimSpace(text) == "" {
				require.ErrorIs(t, err, plist.ErrNone)
			} else {
				require.ErrorIs(t, err, plist.ErrBroken)
			}
		})
	}
}

func TestFind(t *testing.T) {
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
			d, around, err := plist.Find([]byte(text))
			require.NoError(t, err)
			assert.Equal(t, "1", d.String("a"))
			assert.LessOrEqual(t, len(around), len(text))
		})
	}
	_, around, err := plist.Find([]byte("created: /x\n"))
	require.ErrorIs(t, err, plist.ErrNone)
	assert.Equal(t, "created: /x\n", around)
	for cut := len(head); cut < len(good); cut++ {
		_, _, err := plist.Find([]byte(good[:cut]))
		require.ErrorIs(t, err, plist.ErrBroken, "cut at %d", cut)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(wrap(`<dict><key>a</key><array><true/></array></dict>`)))
	f.Add([]byte("licence" + wrap(`<dict/>`) + "tail"))
	f.Add([]byte("bplist00"))
	f.Add([]byte(wrap(`<dict><key>CF$UID</key><integer>1</integer></dict>`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, around, err := plist.Find(text)
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
