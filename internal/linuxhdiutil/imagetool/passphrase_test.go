package imagetool

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"dmgbench/internal/image/container/crypt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told executes a line with something on stdin and expects it to work.
func (m *machine) told(stdin, line string) string {
	m.t.Helper()
	require.Zero(m.t, m.with(stdin, strings.Fields(line)...), "%s: %s", line, m.err)
	return m.out
}

func TestPlainImagesHaveNoPassphrase(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a")
	assert.Equal(t, "encrypted: NO\n", m.do("isencrypted a.dmg"))
	m.refused(1, "Invalid argument: the image is not encrypted", "chpass -oldstdinpass -newstdinpass a.dmg")
	m.write("old.dmg", strings.Repeat("\x00", 2040)+"cdsaencr")
	m.refused(1, "cdsaencr v1", "isencrypted old.dmg")
	m.write("cut.dmg", "encrcdsa")
	m.refused(1, "image not recognized", "isencrypted cut.dmg")
	m.write("broken.dmg", strings.Repeat("\x00", 512)+"koly"+strings.Repeat("\x00", 508))
	assert.Equal(t, "encrypted: NO\n", m.do("isencrypted broken.dmg"))
	m.refused(1, "want -stdinpass", "create -size 8m -encryption AES-256 b")
	m.refused(1, "this program has no prompt", "create -size 8m -encryption AES-256 -agentpass b")
	m.refused(1, "a passphrase, and no encryption", "create -size 8m -stdinpass b")
	m.refused(1, "no passphrase of the new image", "create -size 8m -encryption -stdinpass b")
	assert.NotZero(t, m.with("p\n", strings.Fields("diskutil image create -e blank --format ASIF --size 8Mi --stdinpass b.asif")...))
	assert.Contains(t, m.err, "encrypted ASIF")
	assert.NoFileExists(t, m.path("b.asif"))
}

func TestEncryptedVerbs(t *testing.T) {
	for _, test := range []struct{ make, name, cipher string }{
		{"create -size 8m -fs ExFAT -encryption -stdinpass a", "a.dmg", "AES-128"},
		{"create -size 8m -fs ExFAT -encryption AES-256 -stdinpass -type SPARSEBUNDLE -imagekey sparse-band-size=2048 a", "a.sparsebundle", "AES-256"},
		{"create -size 8m -fs ExFAT -type SPARSE -encryption AES-256 -stdinpass a", "a.sparseimage", "AES-256"},
	} {
		m := newMachine(t)
		m.write("src/file", "text")
		m.told("pass\n", test.make)
		assert.Regexp(t, `^encrypted: YES\nversion: 2\nblocksize: 512\npassphrase-count: 1\nprivate-key-count: 0\nuuid: [0-9A-F-]{36}\n$`, m.do("isencrypted "+test.name))
		assert.Contains(t, m.do("isencrypted -plist "+test.name), "<key>encrypted</key>\n\t\t<true/>")
		m.told("pass\n\x00", "imageinfo -stdinpass "+test.name)
		assert.Contains(t, m.out, "Encryption: "+test.cipher+"\n")
		assert.Contains(t, m.out, "ExFAT: untitled\n")
		for _, wrong := range []string{"pass", "", "\x00pass\n"} {
			assert.Equal(t, statusAuth, m.with(wrong, "imageinfo", "-stdinpass", test.name))
			assert.Contains(t, m.err, "hdiutil: imageinfo failed - Authentication error\n")
		}
		assert.Equal(t, 1, m.with("wrong", "attach", "-stdinpass", test.name))
		assert.Contains(t, m.err, "hdiutil: attach failed - Authentication error\n")
		m.told("pass\n\x00next", "chpass -oldstdinpass -newstdinpass "+test.name)
		assert.Equal(t, statusAuth, m.with("pass\n\x00next", "chpass", "-oldstdinpass", "-newstdinpass", test.name))
		assert.Contains(t, m.err, "hint: the passphrase comes by -oldstdinpass,")
		m.told("next", "resize -stdinpass -size 12m "+test.name)
		m.told("next", "ls -stdinpass "+test.name)
		assert.Contains(t, m.told("next", "imageinfo -stdinpass "+test.name), "Sector Count: 24576\n")
		assert.Equal(t, 1, m.with("next", "verify", "-stdinpass", test.name))
		assert.Contains(t, m.err, "has no checksum")
		if test.name != "a.dmg" {
			assert.Contains(t, m.told("next", "compact -stdinpass "+test.name), "Reclaimed ")
		}
		m.told("next", "attach -stdinpass "+test.name)
		last := m.at.requests[len(m.at.requests)-1]
		assert.NotEmpty(t, last.Image)
		keys := last.Keys
		assert.EqualValues(t, make([]byte, 20), keys[len(keys)-20:], "wiped when the command is over")
	}
}

// TestKeysAreDerivedOnce: what opens an image a second time needs no passphrase any more.
func TestKeysAreDerivedOnce(t *testing.T) {
	m := newMachine(t)
	m.told("pass", "create -size 8m -fs ExFAT -encryption -stdinpass a")
	p, err := placeAt(m.path("a.dmg"))
	require.NoError(t, err)
	defer p.close()
	c := &call{ctx: t.Context(), tool: "hdiutil", env: Env{Stdin: strings.NewReader("pass"), Attacher: m.at.attacher()}.withDefaults(), verb: &verb{}, secrets: secrets{keys: map[string]crypt.Keys{}}, opts: map[string][]string{"stdinpass": {""}}}
	for range 2 {
		img, err := c.open(p, peek)
		require.NoError(t, err)
		require.NoError(t, img.Close())
		clear(c.secrets.raw)
	}
}

// TestPassphrasesHaveALimit: one of 64 KiB is taken, a longer one is refused and not cut.
func TestPassphrasesHaveALimit(t *testing.T) {
	m := newMachine(t)
	long := strings.Repeat("x", maxPassphrase)
	m.told(long, "create -size 1m -layout NONE -encryption -stdinpass a")
	m.told(long, "imageinfo -stdinpass a.dmg")
	assert.Equal(t, 1, m.with(long+"x", "imageinfo", "-stdinpass", "a.dmg"))
	assert.Contains(t, m.err, "the passphrase is longer than 65536 bytes")
}

// TestSecretsAreWiped: a passphrase and the keys from it are not left in memory.
func TestSecretsAreWiped(t *testing.T) {
	raw, keys := []byte("pass"), crypt.Keys("keys of an image")
	s := secrets{raw: raw, keys: map[string]crypt.Keys{"a": keys}}
	s.wipe()
	assert.Equal(t, make([]byte, len(raw)), raw)
	assert.EqualValues(t, make([]byte, len(keys)), keys)
}

// TestConvertEncrypted goes from each kind to others and back.
func TestConvertEncrypted(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", strings.Repeat("content of a file. ", 9999))
	m.do("create -srcfolder src -format UDRW plain")
	want := m.do("checksum -type SHA256 plain.dmg")
	from, pass := "plain.dmg", ""
	for i, step := range []struct{ format, cipher, name string }{
		{"UDSB", "AES-256", "b.sparsebundle"}, {"UDSP", "AES-128", "c.sparseimage"}, {"UDRW", "AES-256", "d.dmg"},
		{"UDZO", "AES-128", "e.dmg"}, {"UDSB", "", "f.sparsebundle"}, {"UDTO", "AES-128", "g.cdr"}, {"ULFO", "AES-256", "h.dmg"}, {"UDRO", "", "i.dmg"},
	} {
		line := "convert " + from + " -format " + step.format + " -o " + step.name
		input, next := pass, ""
		if step.cipher != "" {
			next = "pass" + string(rune('0'+i))
			line += " -encryption " + step.cipher
			if pass != "" {
				input += "\x00"
			}
			input += next
		}
		if input != "" {
			line += " -stdinpass"
		}
		m.told(input, line)
		sum := "checksum -type SHA256 " + step.name
		if step.cipher != "" {
			sum += " -stdinpass"
		}
		assert.Equal(t, want, m.told(next, sum), line)
		assert.Equal(t, step.cipher != "", strings.Contains(m.do("isencrypted "+step.name), "YES"))
		from, pass = step.name, next
	}
	m.told("pass3", "verify -stdinpass e.dmg")
	assert.Contains(t, m.err, "is VALID")
}

// TestCreateEncryptedAndAttach: the devices are told as of an image that is not encrypted.
func TestCreateEncryptedAndAttach(t *testing.T) {
	m := newMachine(t)
	m.told("pass", "create -size 8m -fs ExFAT -encryption -stdinpass -attach a")
	assert.Contains(t, m.out, "\tGUID_partition_scheme")
	assert.Contains(t, m.out, "\tMicrosoft Basic Data")
	last := m.at.requests[len(m.at.requests)-1]
	assert.NotNil(t, last.Keys, "derived once")
}

// TestDiskutilPassphrases are lines.
func TestDiskutilPassphrases(t *testing.T) {
	m := newMachine(t)
	m.told("one\n", "diskutil image create --encrypt blank --size 8Mi --fs ExFAT --stdinpassphrase a.dmg")
	m.told("one\r\ntwo\n", "diskutil image --stdinpass create -e from a.dmg b.sparsebundle")
	assert.Contains(t, m.told("two", "diskutil image info --stdinpassphrase b.sparsebundle"), "Is Encrypted: true\n")
	m.told("two\nthree\n", "diskutil image --stdinpassphrase chpass b.sparsebundle")
	assert.Empty(t, m.out)
	m.told("three\nfour\n", "diskutil image --stdinpassphrase chpass --plist b.sparsebundle")
	assert.Contains(t, m.out, "<key>image-path</key>")
	m.told("four\nthree\n", "diskutil image --stdinpassphrase chpass b.sparsebundle")
	assert.Equal(t, statusAuth, m.with("two\n", "diskutil", "image", "info", "--stdinpassphrase", "b.sparsebundle"))
	assert.Contains(t, m.err, "Error: Failed to get disk image info: Authentication error\n")
	m.told("three\n", "diskutil image create from --stdinpassphrase b.sparsebundle c.dmg")
	assert.Equal(t, "encrypted: NO\n", m.do("isencrypted c.dmg"))
	assert.Contains(t, m.told("three", "diskutil image info --stdinpass b.sparsebundle"), "Sector Count: 16384\n")
}

// TestAWrongPassphraseIsOneError: each verb on each kind ends with the status that hdiutil.md has for it (attach 1; the number of
// Authentication error unsupportedVerbs), says so in the same words, leaves the image as it is, and repeats no passphrase.
func TestAWrongPassphraseIsOneError(t *testing.T) {
	m := newMachine(t)
	const right, wrong = "the right phrase", "a wrong phrase"
	m.write("src/file", "text")
	m.told(right, "create -size 8m -fs ExFAT -encryption -stdinpass rw")
	m.told(right, "create -size 8m -fs ExFAT -encryption -stdinpass -type SPARSEBUNDLE -imagekey sparse-band-size=2048 sb")
	m.told(right, "create -size 8m -fs ExFAT -encryption -stdinpass -type SPARSE sp")
	m.told(right, "create -srcfolder src -fs ExFAT -format UDZO -encryption -stdinpass zo")
	for _, image := range []string{"rw.dmg", "sb.sparsebundle", "sp.sparseimage", "zo.dmg"} {
		for _, verb := range []struct {
			line   string
			status int
			says   string // the name in the message, if it is not the verb
		}{
			{"attach -stdinpass IMAGE", 1, ""}, {"mount -stdinpass -noverify IMAGE", 1, "attach"},
			{"convert IMAGE -format UDRW -o out -stdinpass", statusAuth, ""}, {"compact -stdinpass IMAGE", statusAuth, ""},
			{"resize -stdinpass -size 16m IMAGE", statusAuth, ""}, {"resize -stdinpass -limits IMAGE", statusAuth, ""},
			{"verify -stdinpass IMAGE", statusAuth, ""}, {"checksum -type SHA1 -stdinpass IMAGE", statusAuth, ""},
			{"chpass -oldstdinpass -newstdinpass IMAGE", statusAuth, ""}, {"imageinfo -stdinpass IMAGE", statusAuth, ""},
			{"imageinfo -plist -stdinpass IMAGE", statusAuth, ""}, {"pmap -stdinpass IMAGE", statusAuth, ""}, {"ls -stdinpass IMAGE", statusAuth, ""},
			{"diskutil image info --stdinpassphrase IMAGE", statusAuth, ""}, {"diskutil image attach --stdinpassphrase IMAGE", 1, ""},
			{"diskutil image --stdinpassphrase chpass IMAGE", statusAuth, ""}, {"diskutil image resize --stdinpassphrase --size 16Mi IMAGE", statusAuth, ""},
		} {
			line := strings.ReplaceAll(verb.line, "IMAGE", image)
			before := m.do("isencrypted -plist " + image)
			end, says := "\x00", verb.says
			if strings.HasPrefix(line, "diskutil") {
				end = "\n"
			}
			assert.Equal(t, verb.status, m.with(wrong+end+"next phrase", strings.Fields(line)...), "%s: %s%s", line, m.out, m.err)
			if name, _, _ := strings.Cut(line, " "); says == "" && name != "diskutil" {
				says = name
			}
			if says != "" {
				says = "hdiutil: " + says + " failed - "
			}
			assert.Contains(t, m.err, says+"Authentication error\n", line)
			for _, secret := range []string{right, wrong, "next phrase"} {
				assert.NotContains(t, m.out+m.err, secret, line)
			}
			assert.Equal(t, before, m.do("isencrypted -plist "+image), "no passphrase is needed for it")
			assert.NoFileExists(t, m.path("out.dmg"))
			assert.Empty(t, m.leftovers(), line)
		}
		assert.Empty(t, m.at.requests, "nothing was attached")
		m.told(right, "ls -stdinpass "+image)
	}
}

// TestStdinThatStaysOpen: a passphrase ends with its NUL or line, whether or not stdin does.
func TestStdinThatStaysOpen(t *testing.T) {
	m := newMachine(t)
	m.told("one", "create -size 8m -fs ExFAT -encryption -stdinpass a")
	in, write := io.Pipe()
	t.Cleanup(func() { write.Close() })
	env := Env{Stdin: in, Attacher: m.at.attacher(), Dir: m.dir, Iterations: 1000}.withDefaults()
	for _, test := range []struct{ input, line string }{
		{"one\x00", "imageinfo -stdinpass a.dmg"}, {"one\x00two\x00", "chpass -oldstdinpass -newstdinpass a.dmg"},
		{"two\n", "diskutil image info --stdinpass a.dmg"}, {"two\nthree\n", "diskutil image chpass --stdinpass a.dmg"},
		{"three\x00four\x00", "convert -stdinpass a.dmg -format UDZO -encryption -o b"},
	} {
		go write.Write([]byte(test.input))
		assert.Equal(t, 0, Main(t.Context(), strings.Fields(test.line), env), test.line)
	}
}

func TestNoPassphraseFromATerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer terminal.Close()
	m := newMachine(t)
	m.told("one", "create -size 8m -fs ExFAT -encryption -stdinpass a")
	var errs bytes.Buffer
	assert.Equal(t, 1, Main(t.Context(), strings.Fields("imageinfo -stdinpass a.dmg"), Env{Stdin: terminal, Stderr: &errs, Dir: m.dir}.withDefaults()))
	assert.Contains(t, errs.String(), "hdiutil: imageinfo failed - stdin is a terminal")
}
