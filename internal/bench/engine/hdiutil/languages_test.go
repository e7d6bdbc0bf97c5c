package hdiutil

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// languagesOfMacOS are those that macOS is translated into.
var languagesOfMacOS = strings.Fields("ar ca cs da de el es fi fr he hi hr hu id it ja ko ms nb nl pl pt ro ru sk sv th tr uk vi zh-Hans zh-Hant")

// wordsByLanguage is the table of one class.
func wordsByLanguage(c Class) map[string]string {
	words := map[string]string{}
	for entry := range strings.SplitSeq(localized[c], ";") {
		language, list, _ := strings.Cut(strings.TrimSpace(entry), " ")
		words[language] = list
	}
	return words
}

// reading is the class that the driver gives to an output of hdiutil.
func reading(said string) Class {
	return row{Argv: []string{"hdiutil", "attach"}, Status: 1, Stderr: said}.failure().Class
}

// The words of each class name it and no other one, in each language, in capitals, decomposed, and with typographic apostrophes.
func TestWordsOfEachLanguage(t *testing.T) {
	for c := range localized {
		words := wordsByLanguage(c)
		for _, l := range languagesOfMacOS {
			if c != Quota { // "quota" in several languages
				assert.Contains(t, words, l, c.name)
			}
			for _, w := range strings.Split(words[l], "|") {
				w = strings.ReplaceAll(strings.TrimSpace(w), "*", " … ")
				if w == "" {
					continue
				}
				for _, text := range []string{w, norm.NFD.String(w), strings.ToUpper(w), strings.ReplaceAll(w, "'", "’")} {
					assert.Equal(t, c.name, reading("hdiutil: attach failed - "+text).name, "%s: %s", l, text)
				}
			}
		}
	}
}

// Numbers come before words, in whatever language, and what only looks like one is none.
func TestNumbersOfErrors(t *testing.T) {
	for said, want := range map[string]Class{
		"hdiutil: resize: failed. ??? (35)":                                                        Locked,
		"hdiutil: resize: failed. ???（35）":                                                         Locked,
		"hdiutil: attach failed - error 16":                                                        Busy,
		"hdiutil: attach failed - error -5341":                                                     Unknown,
		"hdiutil: detach failed - 49168":                                                           Busy,
		"hdiutil: detach failed - 0xC010":                                                          Busy,
		"DIHLDiskImageAttach() returned 35\nhdiutil: attach failed - ???":                          Locked,
		"detachTempimageFile: synchronous unmount /dev/disk2s1 returned 49168":                     Busy,
		"APFS Container Resize error code is 49187":                                                Locked,
		"Error: -69877: ???":                                                                       Busy,
		"Error -69888: ???":                                                                        Busy,
		"Error Domain=NSPOSIXErrorDomain Code=16 \"???\" UserInfo={x=1}":                           Busy,
		"Error Domain=DIErrorDomain Code=16 \"Permission denied\"":                                 Permission,
		"L’opération n’a pas pu s’achever. (NSPOSIXErrorDomain erreur 13.)":                        Permission,
		"操作を完了できませんでした。（NSPOSIXErrorDomainエラー60）":                                                  TimedOut,
		"Не вдалося завершити операцію. (Помилка 28 у NSPOSIXErrorDomain.)":                        NoSpace,
		"The operation couldn’t be completed. (OSStatus error -60006.)":                            Canceled,
		"磁盘映像操作失败，错误代码为16":                                                                         Busy,
		"Failed to attach the disk image, error code 6":                                            NoDevice,
		"kDAReturnBusy (0xf8da0002)":                                                               Busy,
		"unmount failed, status -119930878":                                                        Busy,
		"open: Permission denied (errno 6)":                                                        NoDevice,
		"Underlying error: 16: POSIX reports: Resource busy":                                       Busy,
		"hdiutil: attach failed - ??? 16 MB":                                                       Unknown,
		"error reading 16 bytes at offset 35":                                                      Unknown,
		"Error: 2 volumes were looked at":                                                          Unknown,
		"diskimages-helper[16:35] x":                                                               Unknown,
		"error on line 16":                                                                         Unknown,
		"version 13.6 (22G120): error":                                                             Unknown,
		"2026-11-28 16:35:22 copy (16":                                                             Unknown,
		"newfs_apfs: exit status 1":                                                                Unknown,
		"x (24D60)":                                                                                Unknown,
		"File system check exit code is 1\nError: -69845: ???\nUnderlying error: 1: POSIX reports": DamagedVolume,
		"Error: -69845: ???\nUnderlying error: 13: POSIX reports":                                  Permission,
	} {
		assert.Equal(t, want.name, reading(said).name, said)
	}
}

// The reason is found in whichever line it is, and on the line of the progress.
func TestReasonInAnyLine(t *testing.T) {
	e := row{Argv: []string{"hdiutil", "attach"}, Status: 1, Stderr: "PERCENT:12.5\r\nUnderlying error: No space left on device\nhint: a\nhint: b\nhint: c\n"}.failure()
	assert.Equal(t, NoSpace, e.Class)
	assert.Contains(t, e.Error(), "No space left on device")
	assert.Equal(t, Locked, reading("[ 1% completed]\r[99% completed] Error: Failed to create disk image: The operation couldn’t be completed. Resource temporarily unavailable"))
	assert.Equal(t, Busy, reading("......................................hdiutil: create failed - Resource busy"))
	assert.Equal(t, NotFound, row{Argv: []string{"diskutil", "eject"}, Status: 1, Stdout: "Failed to find disk disk99\n", Stderr: "warning: something is deprecated\n"}.failure().Class)
}

// Names of files and volumes are no reasons, wherever they stand.
func TestNamesAreNoReasons(t *testing.T) {
	var english []string
	for _, w := range vocabulary() {
		for _, parts := range w.words {
			english = append(english, strings.Join(parts, " "))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := strings.TrimSpace(rapid.SampledFrom(english).Draw(t, "name"))
		form := rapid.SampledFrom([]string{`hdiutil: couldn't unmount "%" - Permission denied`, `hdiutil: attach: %.dmg - Permission denied`,
			`could not access /Volumes/%/x - Permission denied` + "\nhdiutil: create failed - Permission denied", "hdiutil: attach failed on “%” - Permission denied",
			"Error: Failed to attach '%': The operation couldn’t be completed. Permission denied", "hdiutil: attach failed on «%» - Permission denied",
			`hdiutil: attach: "/tmp/%.dmg": Permission denied`, "hdiutil: attach: „%“: Permission denied"}).Draw(t, "form")
		if strings.ContainsAny(name, `"'”»`) {
			t.Skip("a quotation mark")
		}
		said := strings.ReplaceAll(form, "%", name)
		if got := reading(said); got != Permission {
			t.Fatalf("%q is read as %s", said, got.name)
		}
	})
	// What the driver itself gave to the tool.
	c := command.Command{Tool: command.Hdiutil, Verb: "attach", Args: []string{"attach", "/private/tmp/image not recognized.dmg"}}
	class, _ := classify(c, 1, command.ParseMessages("hdiutil: attach: /private/tmp/image not recognized.dmg: ???"))
	assert.Equal(t, Unknown, class)
}

// What nobody knows is no verdict on the image, and is tried again where that is safe.
func TestUnknownFailures(t *testing.T) {
	unknown := row{Argv: []string{"hdiutil", "attach"}, Status: 1, Stderr: "hdiutil: attach failed - ???"}.failure()
	require.Equal(t, Unknown, unknown.Class)
	require.NotContains(t, verdicts, unknown.Class)
	for verb, want := range map[string]int{"attach": 3, "create": 3, "verify": 3, "image attach": 3, "detach": 1, "eject": 1, "resize": 1, "image resize": 1,
		"compact": 1, "repairVolume": 1} {
		assert.Equal(t, want, triesFor(verb, unknown), verb)
	}
}

// An announcement of a new command is no error, in whatever words.
func TestDeprecations(t *testing.T) {
	for _, line := range []string{"hdiutil: WARNING: 'hdiutil attach ...' is deprecated. Please use 'diskutil image attach ...' instead.",
		"hdiutil: 警告: 'hdiutil detach ...'は非推奨です。代わりに'diskutil eject ...'を使用してください。", "warning: create -fs HFS+ is deprecated and will be removed",
		"hdiutil: WARNUNG: „hdiutil create …“ ist veraltet. Verwenden Sie „diskutil image create blank …“."} {
		assert.Len(t, command.ParseMessages(line).Deprecated, 1, line)
	}
	for _, line := range []string{"hdiutil: attach failed - this image format is not supported by hdiutil. Please use 'diskutil image attach'",
		"Usage: diskutil image attach <path>", "  See 'diskutil image attach --help' for more information."} {
		assert.Empty(t, command.ParseMessages(line).Deprecated, line)
	}
}
