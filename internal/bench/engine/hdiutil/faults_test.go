package hdiutil

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/image/container"
	"dmgbench/internal/system/clock"
)

func rules(list ...FakeRule) FakeConfig { return FakeConfig{Rules: list} }

// verb is an action of the engine that runs one verb, and what is there before.
type verb struct {
	name string
	do   func(r *rig) (engine.Report, error)
}

// actions are one action for every verb. Setting up needs no call of the verb itself.
func actions() []verb {
	created := func(r *rig, s engine.Spec) *image {
		c := r.create("image", s)
		c.TakeReport()
		return c
	}
	told := func(c any, err error) (engine.Report, error) {
		if err != nil {
			return engine.Report{}, err
		}
		return c.(engine.Reporter).TakeReport(), nil
	}
	return []verb{
		{"create", func(r *rig) (engine.Report, error) {
			return told(r.e.Create(r.t.Context(), r.dir, "image", spec("UDSB")))
		}},
		{"image create blank", func(r *rig) (engine.Report, error) {
			return told(r.e.Create(r.t.Context(), r.dir, "image", spec("ASIF")))
		}},
		{"attach", func(r *rig) (engine.Report, error) {
			a, err := created(r, spec("UDRW")).Attach(r.t.Context(), engine.AttachOptions{})
			if err != nil {
				return engine.Report{}, err
			}
			put(r.t, a.Volume(), "x")
			rep := a.(engine.Reporter).TakeReport()
			_, err = a.Detach(r.t.Context(), false)
			return rep, err
		}},
		{"image attach", func(r *rig) (engine.Report, error) {
			a, err := created(r, spec("ASIF")).Attach(r.t.Context(), engine.AttachOptions{})
			if err != nil {
				return engine.Report{}, err
			}
			rep := a.(engine.Reporter).TakeReport()
			_, err = a.Detach(r.t.Context(), false)
			return rep, err
		}},
		{"convert", func(r *rig) (engine.Report, error) {
			return told(created(r, spec("UDRW")).Convert(r.t.Context(), r.dir, "other", spec("UDZO")))
		}},
		{"image create from", func(r *rig) (engine.Report, error) {
			return told(created(r, spec("ASIF")).Convert(r.t.Context(), r.dir, "other", spec("UDZO")))
		}},
		{"compact", func(r *rig) (engine.Report, error) {
			return created(r, spec("UDSB")).Compact(r.t.Context(), engine.CompactOptions{})
		}},
		{"resize", func(r *rig) (engine.Report, error) {
			return created(r, spec("UDRW", on("HFS+"))).Resize(r.t.Context(), 64<<20)
		}},
		{"image resize", func(r *rig) (engine.Report, error) {
			return created(r, spec("UDSB", by("diskutil"))).Resize(r.t.Context(), 64<<20)
		}},
		{"imageinfo", func(r *rig) (engine.Report, error) {
			return created(r, spec("UDRW")).Check(r.t.Context(), engine.CheckOptions{What: "container"})
		}},
		{"image info", func(r *rig) (engine.Report, error) {
			return created(r, spec("ASIF")).Check(r.t.Context(), engine.CheckOptions{What: "container"})
		}},
		{"verifyVolume", func(r *rig) (engine.Report, error) {
			return created(r, spec("UDRW")).Check(r.t.Context(), engine.CheckOptions{What: "volume"})
		}},
	}
}

func without(lines []string, word string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, word) })
}

// Busy twice and then fine: the right result, each retry a warning, the waits on the clock.
func TestBusyTwiceThenFine(t *testing.T) {
	for _, do := range []string{"busy", "eagain", "eagain-foreign"} {
		for _, v := range actions() {
			if do != "busy" && v.name != "attach" {
				continue // what is transient does not depend on the verb
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, To: 2, Do: do}))
				rep, err := v.do(r)
				require.NoError(t, err)
				assert.Len(t, rep.Warnings, 2, "%v", rep.Warnings)
				for _, w := range rep.Warnings {
					assert.Contains(t, w, v.name+" failed and was tried again after")
				}
				assert.Equal(t, 1500*time.Millisecond, r.clock.Now())
				key := strings.ReplaceAll(v.name, " ", "_")
				assert.Equal(t, "3", rep.Reported[key+"_tries"])
				assert.NotEmpty(t, rep.Reported[key+"_ns"])
				r.clean()
			})
		}
	}
}

// On a clock that moves, too, a command that succeeds at once has no time of failed tries.
func TestNothingIsRetriedAtOnce(t *testing.T) {
	for _, v := range actions() {
		r := newRig(t, rules(), func(o *Options) { o.Clock = clock.NewReal() })
		rep, err := v.do(r)
		require.NoError(t, err, v.name)
		assert.Zero(t, rep.Retried, v.name)
		assert.Zero(t, rep.Retries, v.name)
		r.clean()
	}
}

func TestBusyForEver(t *testing.T) {
	for do, want := range map[string]error{"busy": syscall.EBUSY, "eagain": syscall.EAGAIN} {
		for _, v := range actions() {
			if do != "eagain" && v.name != "create" && v.name != "image attach" {
				continue
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, Do: do}))
				_, err := v.do(r)
				require.ErrorIs(t, err, want)
				assert.Contains(t, err.Error(), "Resource")
				assert.Contains(t, err.Error(), "tried 5 times")
				assert.Len(t, r.verbs(v.name), tries)
				assert.Equal(t, 7500*time.Millisecond, r.clock.Now())
				r.clean()
			})
		}
	}
}

// "Device not configured", and of create "image not recognized", pass by themselves on loaded machines: the command is run again,
// a bounded number of times, and the time of that is told. Other verbs, and other failures, are final.
func TestDeviceNotConfigured(t *testing.T) {
	const noDevice, notImage = "hdiutil: it failed - Device not configured", "hdiutil: create failed - image not recognized"
	for _, v := range actions() {
		text, again := noDevice, slices.Contains([]string{"create", "image create blank", "attach", "image attach", "resize", "image resize"}, v.name)
		for range map[bool]int{true: 2, false: 1}[v.name == "create"] {
			rule := FakeRule{Verb: v.name, From: 1, To: 2, Do: "fail", Text: text, Status: 1, Half: strings.Contains(v.name, "create")}
			t.Run(v.name+"/"+text, func(t *testing.T) {
				r := newRig(t, rules(rule))
				rep, err := v.do(r)
				if !again {
					require.ErrorIs(t, err, syscall.ENXIO)
					assert.Len(t, r.verbs(v.name), 1)
					return
				}
				require.NoError(t, err)
				require.Len(t, rep.Warnings, 2)
				assert.Contains(t, rep.Warnings[0], v.name+" failed and was tried again after 500ms: "+text)
				assert.Equal(t, "3", rep.Reported[strings.ReplaceAll(v.name, " ", "_")+"_tries"])
				assert.Equal(t, 1500*time.Millisecond, rep.Retried)
				assert.Equal(t, 2, rep.Retries)
				r.clean()

				rule.To = 0
				r = newRig(t, rules(rule))
				_, err = v.do(r)
				require.ErrorContains(t, err, text)
				require.ErrorContains(t, err, "tried 4 times")
				assert.Len(t, without(r.verbs(v.name), "-limits"), deviceTries)
				r.clean()
			})
			text = notImage
		}
	}
}

// What a tool calls corrupt is a finding of a check, and an error that says so of an attach. It is not tried again.
func TestCorruptImage(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "attach", From: 1, Do: "fail", Text: "hdiutil: attach failed - corrupt image", Status: 1},
		FakeRule{Verb: "verify", From: 1, Do: "fail", Text: "hdiutil: verify failed - image data corrupted", Status: 1}))
	c := r.create("x", spec("UDRW"))
	_, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, container.ErrCorrupt)
	assert.Len(t, r.verbs("attach"), 1)
	sealed, err := c.Convert(t.Context(), r.dir, "sealed", spec("UDZO"))
	require.NoError(t, err)
	for _, what := range []string{"container", "volume"} {
		rep, err := sealed.Check(t.Context(), engine.CheckOptions{What: what})
		require.NoError(t, err)
		require.Len(t, rep.Findings, 1, what)
		assert.Contains(t, rep.Findings[0], "corrupt")
	}
	r.clean()
}

// Failures for good are not tried again, unknown ones a few times; what they are survives.
func TestFailures(t *testing.T) {
	for _, f := range []struct {
		text   string
		status int
		want   error
		class  Class
	}{
		{"hdiutil: create failed - No space left on device", 1, syscall.ENOSPC, NoSpace},
		{"hdiutil: attach failed - Authentication error", 1, ErrAuth, Auth},
		{"hdiutil: attach a échoué - Fichier ou répertoire introuvable", 1, fs.ErrNotExist, NotFound},
		{"hdiutil: 失败 (28)", 1, syscall.ENOSPC, NoSpace},
		{"Error: Failed to create disk image: The operation couldn’t be completed. Operation not permitted", 1, fs.ErrPermission, NotPermitted},
		{"", 70, nil, Unknown},
	} {
		for _, v := range actions() {
			if v.name == "imageinfo" || v.name == "image info" || v.name == "verifyVolume" {
				continue // there, a verdict on the image is a finding: see TestVerdicts
			}
			if few := v.name == "create" || v.name == "attach" || v.name == "image create blank"; !few && f.class != NoSpace {
				continue // classes do not depend on the verb
			}
			if f.class == Auth && v.name == "create" {
				continue // without a passphrase it is about a file that is copied
			}
			t.Run(f.class.name+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, Do: "fail", Text: f.text, Status: f.status, Half: strings.Contains(v.name, "create") || v.name == "convert"}))
				_, err := v.do(r)
				require.Error(t, err)
				assert.Equal(t, f.class, classOf(err))
				if f.want != nil {
					require.ErrorIs(t, err, f.want)
				}
				assert.Contains(t, err.Error(), fmt.Sprintf("status %d", f.status))
				if f.text != "" {
					assert.Contains(t, err.Error(), strings.TrimPrefix(f.text, "hdiutil: "))
				}
				want := 1
				if f.class == Unknown {
					want = otherTries
				}
				assert.Len(t, without(r.verbs(v.name), "-limits"), want)
				if strings.Contains(v.name, "create") && v.name != "image create from" {
					left, err := os.ReadDir(r.dir.Path())
					require.NoError(t, err)
					assert.Empty(t, left, "half a file")
				}
				r.clean()
			})
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, v := range actions() {
		if v.name != "imageinfo" && v.name != "image info" && v.name != "verifyVolume" {
			continue
		}
		r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, Do: "fail", Text: "hdiutil: it failed - image not recognized", Status: 1}))
		rep, err := v.do(r)
		require.NoError(t, err, v.name)
		require.Len(t, rep.Findings, 1, v.name)
		assert.Contains(t, rep.Findings[0], "image not recognized")
		r.clean()
	}
}

// Status 0 without the result is an error, and nothing stays attached.
func TestStatusZeroWithoutResult(t *testing.T) {
	list := []string{"create", "image create blank", "attach", "image attach", "convert", "image create from", "resize", "image resize"}
	for _, do := range []string{"nothing", "garbage", "empty", "truncated"} {
		for _, v := range actions() {
			needsText := strings.HasSuffix(v.name, "attach") || v.name == "imageinfo" || v.name == "image info"
			if do != "nothing" && !needsText || do == "nothing" && !strings.Contains(strings.Join(list, ","), v.name) {
				continue
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, Do: do}))
				rep, err := v.do(r)
				if v.name == "resize" {
					require.NoError(t, err, "diskutil did it")
					assert.Contains(t, rep.Warnings[0], "diskutil was asked")
				} else {
					require.ErrorIs(t, err, ErrNoResult)
				}
				r.clean()
			})
		}
	}
}

// Lines and licences around the result change nothing; deprecations are kept.
func TestTalkAroundTheResult(t *testing.T) {
	for _, do := range []string{"deprecated", "licence"} {
		for _, v := range actions() {
			if do == "licence" && !strings.HasSuffix(v.name, "attach") && v.name != "imageinfo" {
				continue // the others print no list
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, Do: do}))
				rep, err := v.do(r)
				require.NoError(t, err)
				assert.Empty(t, rep.Warnings)
				assert.Empty(t, rep.Findings)
				if do == "deprecated" {
					assert.Contains(t, rep.Reported["deprecated"], "deprecated. Please use 'diskutil")
				}
				r.clean()
			})
		}
	}
}

// A tool that hangs is ended; what it had attached is detached.
func TestHang(t *testing.T) {
	for _, do := range []string{"hang", "hang-after"} {
		for _, v := range actions() {
			after := strings.HasSuffix(v.name, "attach") || v.name == "create"
			if do == "hang-after" && !after || do == "hang" && v.name == "image info" {
				continue
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, Do: do}))
				_, err := v.do(r)
				require.ErrorIs(t, err, command.ErrDeadline)
				assert.Equal(t, Deadline, classOf(err))
				r.clean()
			})
		}
	}
}

// A tool that somebody else's signal ended says nothing of the image: that is an error, which names the signal, and no finding.
func TestKilled(t *testing.T) {
	for _, v := range actions() {
		t.Run(v.name, func(t *testing.T) {
			r := newRig(t, rules(FakeRule{Verb: v.name, From: 1, Do: "killed"}))
			rep, err := v.do(r)
			require.ErrorIs(t, err, command.ErrSignal)
			require.ErrorContains(t, err, "a signal ended it: killed (")
			assert.Equal(t, Killed, classOf(err))
			assert.Empty(t, rep.Findings)
			r.clean()
		})
	}
}

// An interrupted attach leaves nothing attached, though its context is over.
func TestCancel(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "attach", From: 1, To: 1, Do: "hang-after"}))
	c := r.create("x", spec("UDRW"))
	ctx, cancel := context.WithCancel(t.Context())
	r.tool.OnHang = cancel // the tool has done its work
	_, err := c.Attach(ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, context.Canceled)
	r.clean()
	_, err = c.Attach(ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestWrongPassphrase(t *testing.T) {
	r := newRig(t, FakeConfig{})
	for _, s := range []engine.Spec{spec("UDSB", encrypted("AES-256")), spec("ASIF", encrypted("AES-256"))} {
		r.create("x", s)
		wrong := s
		wrong.Passphrase = []byte("battery staple")
		c, err := r.e.Open(t.Context(), r.dir, "x", wrong)
		require.NoError(t, err)
		_, err = c.Attach(t.Context(), engine.AttachOptions{})
		require.ErrorIs(t, err, ErrAuth)
		assert.NotContains(t, err.Error(), "staple")
		s.Passphrase = nil
		_, err = r.e.Create(t.Context(), r.dir, "y", s)
		require.ErrorContains(t, err, "without a passphrase")
	}
	s := spec("ASIF", encrypted("AES-256"))
	s.Passphrase = []byte("two\nlines")
	_, err := r.e.Create(t.Context(), r.dir, "z", s)
	require.ErrorContains(t, err, "line break")
	r.clean()
}
