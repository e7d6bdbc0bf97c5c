package interoptest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"
)

const passphrase = "a passphrase, with ü"

// told runs a program with something on stdin and returns its status and what it said.
func told(t *testing.T, stdin, name string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = bytes.NewBufferString(stdin)
	out, _ := cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, "%s did not start", name)
	return cmd.ProcessState.ExitCode(), string(out)
}

func toldFine(t *testing.T, stdin, name string, args ...string) {
	t.Helper()
	status, said := told(t, stdin, name, args...)
	require.Zero(t, status, "%s %q: %s", name, args, said)
}

// decrypt lets the decryptor that was written from the format page alone do its work.
func decrypt(t *testing.T, pass, image, out string, also ...string) {
	t.Helper()
	args := append([]string{interoptest.Script(t, "encrypted.py"), image, "--passphrase-stdin", "--raw", out}, also...)
	toldFine(t, pass, interoptest.Python(t, "cryptography"), args...)
}

func fstoolDecrypt(t *testing.T, pass, image, out string) {
	t.Helper()
	toldFine(t, pass, interoptest.Tool(t, "fstool"), "--password-file", "-", "convert", image, out)
}

// inside are the readers of what an encrypted container holds: of UDRW and UDSB it is the device, others are images again.
var inside = map[string]func(t *testing.T, image, out string){"UDZO": sevenZip, "ULFO": sevenZip, "UDSP": fstoolRaw}

// TestEncryptedKinds lets a decryptor in another language and fstool open what we encrypt. The latter opens no bundles,
// and of sparse images it takes blocks that were never written, zeros in the file, for data, and finds noise there.
func TestEncryptedKinds(t *testing.T) {
	tools(t)
	sizes, ciphers, kinds := []int64{1<<20 + 3*512}, []string{"AES-256"}, []string{"UDRW", "UDZO", "UDSP", "UDSB"}
	if interoptest.Required() {
		kinds = append(kinds, "ULFO")
		sizes, ciphers = append(sizes, 512, 5<<20+3*512, 20<<20), append(ciphers, "AES-128")
	}
	for _, size := range sizes {
		dir := t.TempDir()
		raw := filepath.Join(dir, "raw.cdr")
		want := rawDevice(t, raw, size)
		for _, cipher := range ciphers {
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("%s %s of %d", kind, cipher, size), func(t *testing.T) {
					image := filepath.Join(t.TempDir(), "image"+extension(kind))
					args := []string{"convert", raw, "-format", kind, "-encryption", cipher, "-stdinpass", "-o", image}
					if kind == "UDSB" {
						args = append(args, "-imagekey", "sparse-band-size=2048")
					}
					toldFine(t, passphrase, "hdiutil", args...)
					openedByOthers(t, kind, image, passphrase, want)
					if kind != "UDZO" && !interoptest.Required() { // TestChangedPassphrase has the others
						return
					}
					status, _ := told(t, "wrong", interoptest.Python(t, "cryptography"), interoptest.Script(t, "encrypted.py"), image, "--passphrase-stdin")
					assert.Equal(t, 3, status)
				})
			}
		}
	}
}

// openedByOthers compares the device as others decrypt it.
func openedByOthers(t *testing.T, kind, image, pass, want string) {
	t.Helper()
	by := map[string]func(t *testing.T, pass, image, out string){
		"decryptor": func(t *testing.T, pass, image, out string) { decrypt(t, pass, image, out) },
	}
	if kind != "UDSB" && kind != "UDSP" {
		by["fstool"] = fstoolDecrypt
	}
	for name, open := range by {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			content, device := filepath.Join(dir, "content"+extension(kind)), filepath.Join(dir, "device.img")
			open(t, pass, image, content+".img")
			require.NoError(t, os.Rename(content+".img", content))
			if read := inside[kind]; read != nil && name == "decryptor" {
				read(t, content, device)
			} else {
				device = content
			}
			assert.Equal(t, want, sha(t, device))
		})
	}
}

// TestChangedPassphrase lets others open images whose passphrase was changed.
func TestChangedPassphrase(t *testing.T) {
	tools(t)
	dir := t.TempDir()
	raw := filepath.Join(dir, "raw.cdr")
	want := rawDevice(t, raw, 1<<20+512)
	for _, kind := range []string{"UDRW", "UDSB"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "UDRW" {
				t.Setenv(iterations, "")
			}
			image := filepath.Join(t.TempDir(), "image"+extension(kind))
			toldFine(t, passphrase, "hdiutil", "convert", raw, "-format", kind, "-encryption", "-stdinpass", "-o", image)
			toldFine(t, passphrase+"\x00another", "hdiutil", "chpass", "-oldstdinpass", "-newstdinpass", image)
			openedByOthers(t, kind, image, "another", want)
			status, _ := told(t, passphrase, interoptest.Python(t, "cryptography"), interoptest.Script(t, "encrypted.py"), image, "--passphrase-stdin")
			assert.Equal(t, 3, status, "the old one opens nothing")
		})
	}
}

// TestEncryptedVolumes lets Linux write ext4 volumes into encrypted images; then the decryptor checks partition table and
// volume, e2fsck the volume, and 7-Zip takes a file out.
func TestEncryptedVolumes(t *testing.T) {
	mounts(t)
	interoptest.Tool(t, "mkfs.ext4")
	tools(t)
	content := make([]byte, 2_500_000)
	fill(content, 9)
	for _, kind := range []string{"UDRW", "UDSP", "UDSB"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			image, at := filepath.Join(dir, "i"+extension(kind)), filepath.Join(dir, "mounted")
			raw, part, file := filepath.Join(dir, "raw"), filepath.Join(dir, "part"), filepath.Join(dir, "file")
			require.NoError(t, os.Mkdir(at, 0o700))
			toldFine(t, passphrase, "hdiutil", "create", "-size", "20m", "-fs", "ext4", "-encryption", "AES-256", "-stdinpass", image)
			toldFine(t, passphrase, "hdiutil", "attach", "-stdinpass", "-mountpoint", at, image)
			require.NoError(t, os.WriteFile(filepath.Join(at, "kept"), content, 0o600))
			hdiutil(t, "detach", at)
			if kind != "UDRW" {
				toldFine(t, passphrase, "hdiutil", "compact", "-stdinpass", image)
			}
			decrypt(t, passphrase, image, raw, "--check")
			if kind == "UDSP" {
				require.NoError(t, os.Rename(raw, raw+".sparseimage"))
				fstoolRaw(t, raw+".sparseimage", raw)
			}
			unpack(t, "gpt", raw, part)
			interoptest.Run(t, interoptest.Tool(t, "e2fsck"), "-fn", part)
			unpack(t, "ext", part, file, "kept")
			assert.Equal(t, shaOf(content), sha(t, file))
		})
	}
}
