package hdiutil

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

// Every failure that real tools were seen to report, in their words and with their status.
func TestReportedFailures(t *testing.T) {
	for _, f := range []struct {
		status int
		said   string
		want   Class
	}{
		{16, `hdiutil: couldn't unmount "disk4" - Resource busy`, Busy},
		{1, `hdiutil: couldn't unmount "disk4" - Resource busy`, Busy},
		{16, "\"disk17\" unmounted.\nhdiutil: couldn't eject \"disk17\" - Resource busy", Busy},
		{16, `hdiutil: Deaktivieren von "disk4" fehlgeschlagen - Ressource ist belegt`, Busy},
		{1, "hdiutil: detach: drive not detached", Busy},
		{1, "hdiutil: detach: timeout for DiskArbitration expired", Busy},
		{1, "Volume BENCH on disk4s1 failed to unmount: dissented by PID 123 (/bin/zsh)\nDissenter parent PPID 122 (/usr/sbin/sshd)", Busy},
		{1, "Unmount of disk4 failed: at least one volume could not be unmounted", Busy},
		{1, "Verifying file system\nVolume could not be unmounted\nUsing live mode\nFile system check exit code is 206\n" +
			"Error: -69845: File system verify or repair failed\nUnderlying error: 206", DamagedVolume},
		{1, "hdiutil: detach failed - No such file or directory", NotFound},
		{1, "hdiutil: create failed - Resource busy", Busy},
		{1, "hdiutil: create failed - File exists", Exists},
		{1, "hdiutil: create failed - No child processes", NoHelper},
		{1, "hdiutil: create failed - File too large", TooLarge},
		{1, "hdiutil: create failed - Invalid argument", Invalid},
		{1, "hdiutil: create failed - No space left on device", NoSpace},
		{1, "hdiutil: create failed - Permission denied", Permission},
		{1, "hdiutil: create failed - Operation not permitted", NotPermitted},
		{1, "hdiutil: create: unknown option \"-formt\"\nUsage: hdiutil create …", Invalid},
		{1, "hdiutil: attach failed - no mountable file systems", NoFileSystem},
		{1, "hdiutil: attach failed - nessun file system attivabile", NoFileSystem},
		{1, "hdiutil: attach failed - image not recognized", NotImage},
		{1, "hdiutil: attach failed - Authentication error", Auth},
		{1, "hdiutil: attach failed - Fehler beim Authentifizieren (80)", Auth},
		{1, "hdiutil: attach failed - No such file or directory", NotFound},
		{1, "hdiutil: attach failed - Fichier ou répertoire introuvable", NotFound},
		{1, "hdiutil: create failed - 资源忙", Busy},
		{1, "hdiutil: attach failed - リソースが使用中です", Busy},
		{1, "hdiutil: create failed - Ressource ist belegt", Busy},
		{1, "hdiutil: convert failed - 资源暂时不可用", Locked},
		{1, "hdiutil: create failed - Risorsa momentaneamente non disponibile", Locked},
		{1, "hdiutil: create failed - 리소스 일시 사용 불가", Locked},
		{1, "hdiutil: attach failed - this image format is not supported by hdiutil. Please use 'diskutil image attach'", Unsupported},
		{1, "hdiutil: compact failed - internal error", Unknown},
		{1, "hdiutil: compact failed - Resource temporarily unavailable", Locked},
		{1, "hdiutil: compact failed - Authentication error", Auth},
		{1, "hdiutil: compact failed - Operation not supported", Unsupported},
		{1, "hdiutil: compact: image is not compactable", Unsupported},
		{35, "hdiutil: resize: failed. Resource temporarily unavailable (35)", Locked},
		{35, "hdiutil: resize: failed.", Locked},
		{1, "hdiutil: resize: failed. 资源暂时不可用 (35)", Locked},
		{1, "hdiutil: resize: failed. Device not configured (6)", NoDevice},
		{1, "hdiutil: resize: failed. No space left on device (28)", NoSpace},
		{1, "hdiutil: resize: failed. (-5341)", Unknown},
		{1, "hdiutil: attach failed - corrupt image", Damaged},
		{1, "hdiutil: convert failed - image data corrupted", Damaged},
		{1, "hdiutil: attach failed - Device not configured", NoDevice},
		{1, "hdiutil: verify: unable to recognize \"x.dmg\" as a disk image.", NotImage},
		{1, "Error: Failed to create disk image: The operation couldn’t be completed. Operation not permitted", NotPermitted},
		{1, "Error: Couldn’t communicate with a helper application.", NoHelper},
		{1, `diskutil: did not recognize verb "image"; type "diskutil" for a list`, Unsupported},
		{1, "hdiutil: WARNING: 'hdiutil detach ...' is deprecated. Please use 'diskutil eject ...' instead.\nhdiutil: couldn't unmount \"disk4\" - Resource busy", Busy},
		{1, "hdiutil: WARNING: 'hdiutil attach ...' is deprecated. Please use 'diskutil image attach ...' instead.", Unknown},
		{64, "", Invalid},
	} {
		e := row{Argv: []string{"hdiutil", "attach"}, Status: f.status, Stderr: f.said}.failure()
		assert.Equal(t, f.want.name, e.Class.name, "status %d: %s", f.status, f.said)
	}
}

// A wrong passphrase is one clear error, whatever the status, and says what would help.
func TestWrongPassphraseByAnyStatus(t *testing.T) {
	for verb, s := range map[string]engine.Spec{"attach": spec("UDSB", encrypted("AES-256")), "image attach": spec("ASIF", encrypted("AES-256"))} {
		for _, status := range []int{0, 1, 80} {
			r := newRig(t, rules(FakeRule{Verb: verb, From: 1, Do: "fail", Text: "hdiutil: attach failed - Authentication error", Status: status}))
			_, err := r.create("x", s).Attach(t.Context(), engine.AttachOptions{})
			require.ErrorIs(t, err, ErrAuth)
			var e *ToolError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, Auth, e.Class)
			assert.Contains(t, e.Hint, "DMGBENCH_PASSPHRASE_FILE")
			assert.Equal(t, 1, e.Tries, "trying again helps nobody")
			r.clean()
		}
	}
}

// While other images come and go the list of attached images may lack one: a miss is looked up again.
func TestListThatIsCutShort(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, To: 1, Do: "busy"}, FakeRule{Verb: "info", From: 1, To: 1, Do: "short"}))
	_, a := r.attachedImage(spec("UDRW"))
	rep, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Len(t, r.verbs("info"), 2, "the first did not have it")
	assert.Len(t, r.verbs("detach"), 1)
	assert.Len(t, r.verbs("eject"), 1)
	assert.Len(t, rep.Warnings, 1)
	r.clean()
}
