package hdiutil

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/hdiutiltest"
	"dmgbench/internal/engine/hdiutil/proc"
)

func rules(list ...hdiutiltest.Rule) hdiutiltest.Config { return hdiutiltest.Config{Rules: list} }

// verb is an action of the engine that runs one verb, and what is there before.
type verb struct {
	name string
	do   func(r *rig) (engine.Report, error)
}

// actions are one action for every verb. Setting up needs no call of the verb itself.
func actions() []verb {
	created := func(r *rig, s engine.Spec) *image {
		c := r.create("image", s)
		c.Told()
		return c
	}
	told := func(c any, err error) (engine.Report, error) {
		if err != nil {
			return engine.Report{}, err
		}
		return c.(engine.Teller).Told(), nil
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
			rep := a.(engine.Teller).Told()
			_, err = a.Detach(r.t.Context(), false)
			return rep, err
		}},
		{"image attach", func(r *rig) (engine.Report, error) {
			a, err := created(r, spec("ASIF")).Attach(r.t.Context(), engine.AttachOptions{})
			if err != nil {
				return engine.Report{}, err
			}
			rep := a.(engine.Teller).Told()
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
		{"isencrypted", func(r *rig) (engine.Report, error) {
			return created(r, spec("UDRW", encrypted("AES-256"))).Check(r.t.Context(), engine.CheckOptions{What: "container"})
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
				r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, To: 2, Do: do}))
				rep, err := v.do(r)
				require.NoError(t, err)
				assert.Len(t, rep.Warnings, 2, "%v", rep.Warnings)
				for _, w := range rep.Warnings {
					assert.Contains(t, w, v.name+" was busy and tried again after")
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

func TestBusyForEver(t *testing.T) {
	for do, want := range map[string]error{"busy": syscall.EBUSY, "eagain": syscall.EAGAIN} {
		for _, v := range actions() {
			if do != "eagain" && v.name != "create" && v.name != "image attach" {
				continue
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, Do: do}))
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

// Failures for good are not tried again; what they are survives.
func TestFailures(t *testing.T) {
	for _, f := range []struct {
		text   string
		status int
		want   error
		class  Class
	}{
		{"hdiutil: create failed - No space left on device", 1, syscall.ENOSPC, NoSpace},
		{"hdiutil: attach failed - Authentication error", 1, ErrAuth, Auth},
		{"hdiutil: attach a échoué - Fichier ou répertoire introuvable", 1, nil, Unknown},
		{"hdiutil: resize: failed. Device not configured (6)", 1, syscall.ENXIO, NoDevice},
		{"hdiutil: 失败 (28)", 1, syscall.ENOSPC, NoSpace},
		{"Error: Failed to create disk image: The operation couldn’t be completed. Operation not permitted", 1, fs.ErrPermission, NotPermitted},
		{"", 70, nil, Unknown},
	} {
		for _, v := range actions() {
			if v.name == "imageinfo" || v.name == "image info" || v.name == "isencrypted" || v.name == "verifyVolume" {
				continue // there, a verdict on the image is a finding: see TestVerdicts
			}
			if few := v.name == "create" || v.name == "attach" || v.name == "image create blank"; !few && f.class != NoSpace {
				continue // classes do not depend on the verb
			}
			t.Run(string(f.class)+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, Do: "fail", Text: f.text, Status: f.status, Half: strings.Contains(v.name, "create") || v.name == "convert"}))
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
				assert.Len(t, without(r.verbs(v.name), "-limits"), 1)
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
		if v.name != "imageinfo" && v.name != "image info" && v.name != "verifyVolume" && v.name != "isencrypted" {
			continue
		}
		r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, Do: "fail", Text: "hdiutil: it failed - image not recognized", Status: 1}))
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
			needsText := strings.HasSuffix(v.name, "attach") || v.name == "imageinfo" || v.name == "image info" || v.name == "isencrypted"
			if do != "nothing" && !needsText || do == "nothing" && !strings.Contains(strings.Join(list, ","), v.name) {
				continue
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, Do: do}))
				rep, err := v.do(r)
				if v.name == "imageinfo" || v.name == "image info" || v.name == "isencrypted" {
					require.NoError(t, err)
					assert.NotEmpty(t, rep.Findings)
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
				r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, Do: do}))
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
			if do == "hang-after" && !after || do == "hang" && (v.name == "image info" || v.name == "isencrypted") {
				continue
			}
			limit := 60 * time.Millisecond
			if do == "hang-after" {
				limit = 500 * time.Millisecond // the work has to fit in
			}
			t.Run(do+"/"+v.name, func(t *testing.T) {
				r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, Do: do}), brief(v.name, limit))
				_, err := v.do(r)
				require.ErrorIs(t, err, proc.ErrDeadline)
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
			r := newRig(t, rules(hdiutiltest.Rule{Verb: v.name, From: 1, Do: "killed"}))
			rep, err := v.do(r)
			require.ErrorIs(t, err, proc.ErrSignal)
			require.ErrorContains(t, err, "a signal ended it: killed (")
			assert.Equal(t, Killed, classOf(err))
			assert.Empty(t, rep.Findings)
			r.clean()
		})
	}
}

// An interrupted attach leaves nothing attached, though its context is over.
func TestCancel(t *testing.T) {
	r := newRig(t, rules(hdiutiltest.Rule{Verb: "attach", From: 1, To: 1, Do: "hang-after"}))
	c := r.create("x", spec("UDRW"))
	ctx, cancel := context.WithCancel(t.Context())
	fifo := filepath.Join(r.tool.Dir, hdiutiltest.Hanging)
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	go func() {
		if f, err := os.Open(fifo); err == nil { // the tool has done its work
			f.Close()
		}
		cancel()
	}()
	_, err := c.Attach(ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, context.Canceled)
	r.clean()
	_, err = c.Attach(ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestWrongPassphrase(t *testing.T) {
	r := newRig(t, hdiutiltest.Config{})
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
