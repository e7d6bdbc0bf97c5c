package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/bench/workload/folder"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// cleanupTime bounds the clean-up after a failure.
const cleanupTime = 5 * time.Minute

// attachment is an attached image.
type attachment struct {
	c        *image
	disk     string         // the image's whole disk, which is detached
	device   command.Entity // that carries the volume
	point    string         // our mount point, "" if attached without mounting
	mounted  host.Mount     // as in the system's table
	root     *hostio.Dir
	vol      workload.Volume
	readOnly bool
	start    time.Time // of attaching
	report   engine.Report
	detached bool
	server   int  // process that serves the image, of AttachOptions.Killable
	foreign  bool // another process had attached the image: not ours to detach
}

var (
	_ engine.Attachment         = (*attachment)(nil)
	_ engine.Reporter           = (*attachment)(nil)
	_ engine.PostDetachReporter = (*attachment)(nil)
)

// Attach attaches the image and mounts its volume on a private folder. After an
// error it detaches the image again; if that fails, the error names what is still
// attached, and Remove refuses. An image that another process has attached is an
// error and stays attached.
func (c *image) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.CheckDetached(ctx, "attaching"); err != nil {
		return nil, err
	}
	a := &attachment{c: c, readOnly: o.ReadOnly || c.format.ReadOnly, start: c.e.o.Clock.Wall()}
	if !o.NoMount {
		var err error
		if a.point, err = os.MkdirTemp(c.e.o.WorkDir, "mnt*"); err != nil {
			return nil, fmt.Errorf("making a mount point: %w", err)
		}
	}
	began := c.e.o.Clock.Now()
	err := a.attach(ctx, o)
	if errors.Is(err, errNotReady) {
		err = a.attachAgain(ctx, o, began, err)
	}
	if err == nil && o.Killable {
		err = a.findServer(ctx)
	}
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		left := a.abandon(clean, err)
		c.left = left != nil || a.foreign
		return nil, errors.Join(err, left)
	}
	c.open, c.Attached = a, true
	return a, nil
}

// attach runs the tool, finds out what it attached, and opens the volume. After
// an error abandon has to detach what is left.
func (a *attachment) attach(ctx context.Context, o engine.AttachOptions) error {
	c, line := a.c, "hdiutil attach"
	if c.backend == backendDiskutil {
		line = "diskutil image attach"
	}
	args := command.Args{Image: c.path, MountPoint: a.point, ReadOnly: a.readOnly, Secrets: c.secrets(),
		Browse: a.point != "" && c.spec.Mount == engine.MountFinder,
		Verify: !o.NoVerify && c.format.UDIF, Kernel: c.spec.ServedBy == kernel,
		Helper: c.spec.ServedBy == helper || o.Killable && c.backend == backendHdiutil}
	var got command.Attached
	k := call{doing: "attaching", object: c.File, cmd: command.New(line, args), check: func(out []byte) (err error) {
		got, err = command.ParseAttach(out)
		return err
	}}
	if args.Verify {
		k.bytes = c.size
	}
	if err := c.e.run(ctx, &a.report, k); err != nil {
		return err
	}
	a.disk, _ = got.Disk() // the parser refuses a list without it
	a.device = got.Candidate()
	a.report.Note("device", a.disk)
	a.report.Note("scheme", got.Scheme())
	c.servedBy = strings.TrimPrefix(c.spec.ServedBy, auto)
	points := got.MountPoints()
	for _, e := range got.Entities {
		if a.isPoint(e.MountPoint) {
			a.device, points = e, nil
		}
	}
	a.foreign = len(points) > 0 // another process attached it since CheckDetached
	if a.foreign {
		return a.unusable("it was attached already and is mounted on %q", points[0])
	}
	if err := a.waitUntilReady(ctx); err != nil {
		return err
	}
	if a.point == "" {
		return nil
	}
	return a.openMount()
}

// How long the system may take to announce what attach returned, and how often
// to look.
const (
	readyTime = 3 * time.Second
	readyPoll = 50 * time.Millisecond
)

// errNotReady is an attach whose mount or device did not appear.
var errNotReady = fmt.Errorf("%w: the system has neither mounted nor announced the volume", ErrNoResult)

// waitUntilReady waits until the volume is in the system's table of mounts, or
// without a mount until its device is there. Disk Arbitration announces them,
// and may do so after the tool has ended.
func (a *attachment) waitUntilReady(ctx context.Context) error {
	e := a.c.e
	for until := e.o.Clock.Now() + readyTime; ; {
		ready, err := a.isReady()
		switch {
		case err != nil:
			return fmt.Errorf("attaching %q: %w", a.c.File, err)
		case ready:
			return nil
		case !e.isApple() || e.o.Clock.Now() >= until:
			return fmt.Errorf("attaching %q: %w", a.c.File, errNotReady)
		}
		if err := e.o.Clock.Sleep(ctx, readyPoll); err != nil {
			return err
		}
	}
}

// isReady reports whether the volume is mounted, or without a mount whether its
// device is there.
func (a *attachment) isReady() (bool, error) {
	e := a.c.e
	if a.point != "" {
		_, isMounted, err := e.host.mountedOn(a.point)
		return isMounted, err
	}
	return !e.isApple() || e.host.Exists(cmp.Or(a.device.Device, a.disk)), nil
}

// attachAgain detaches what the attach that began then left, and attaches once
// more. All until now counts as a retry.
func (a *attachment) attachAgain(ctx context.Context, o engine.AttachOptions, began time.Duration, cause error) error {
	a.report.Warn("attaching was tried again: %v", cause)
	left := &attachment{c: a.c, disk: a.disk}
	_, ok, err := a.c.findAttached(ctx, &a.report, a.disk)
	if ok {
		err = left.detach(ctx, true)
		a.report.Add(left.report)
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	a.report.Retried, a.report.Asked = a.c.e.o.Clock.Now()-began, 0
	a.report.Retries++
	return a.attach(ctx, o)
}

// isPoint reports whether a path is that of our mount point.
func (a *attachment) isPoint(path string) bool {
	return a.point != "" && path != "" && sameFile(path, a.point)
}

// unusable is the error of an attach that succeeded without the requested
// result.
func (a *attachment) unusable(format string, args ...any) error {
	return fmt.Errorf("attaching %q: %w: %s", a.c.File, ErrNoResult, fmt.Sprintf(format, args...))
}

// openMount checks that the volume is mounted as requested, and opens it.
func (a *attachment) openMount() error {
	c := a.c
	m, ok, err := c.e.host.mountedOn(a.point)
	switch {
	case err != nil:
		return fmt.Errorf("attaching %q: %w", c.File, err)
	case !ok:
		return a.unusable("the volume is no longer mounted")
	case m.ReadOnly && !a.readOnly:
		return a.unusable("the volume was mounted read-only")
	case !a.readOnly && c.e.host.Writable != nil && !c.e.host.Writable(a.point):
		return a.unusable("this user may not write to the root folder of the volume, whose owners are not ignored")
	}
	a.mounted = m
	c.reportMount(&a.report, m)
	if c.e.host.ServedBy != nil {
		c.servedBy = cmp.Or(c.e.host.ServedBy(a.disk, m.Type, c.path), c.servedBy)
	}
	a.report.Note("mounted_as", m.Type)
	if len(c.fs.types) > 0 && !slices.Contains(c.fs.types, m.Type) && !strings.HasPrefix(m.Type, "fuse") {
		a.report.Warn("the volume is mounted as %s, %s was asked for", m.Type, c.fs.name)
	}
	c.reportVolumeSize(&a.report, a.point)
	return a.openVolume()
}

// reportMount keeps how macOS mounted the volume, by the flags of its table.
// Elsewhere nothing browses volumes, and owners are those that they store.
func (c *image) reportMount(t *engine.Report, m host.Mount) {
	c.mount = engine.MountPrivate
	if !c.e.isApple() {
		return
	}
	c.owners = engine.OwnersKept
	if m.IgnoresOwners {
		c.owners = engine.OwnersIgnored
	}
	if m.Browsable {
		c.mount = engine.MountFinder
	}
	if mount := cmp.Or(c.spec.Mount, engine.MountPrivate); c.mount != mount {
		t.Warn("the mount is %s, %s was asked for", c.mount, mount)
	}
}

// reportVolumeSize reports the size of the volume at the first mount after a
// resize: a tool may resize the device alone.
func (c *image) reportVolumeSize(t *engine.Report, point string) {
	if c.sizeBefore == 0 || c.e.host.VolumeSize == nil {
		return
	}
	n, err := c.e.host.VolumeSize(point)
	if err != nil {
		t.Warn("the size of the volume after the resize is not known: %v", err)
		return
	}
	before, now := max(n-c.sizeBefore, c.sizeBefore-n), max(n-c.size, c.size-n)
	if before < now {
		t.Warn("the image was resized to %s, and its volume still has %s", units.Bytes(c.size).Human(),
			units.Bytes(n).Human())
	}
	t.Note("volume_size", strconv.FormatInt(n, 10))
	c.sizeBefore = 0
}

// openVolume opens the mount point for files.
func (a *attachment) openVolume() error {
	root, err := hostio.OpenDir(a.point)
	if err != nil {
		return fmt.Errorf("opening the volume of %q: %w", a.c.File, err)
	}
	a.root = root
	a.vol = folder.New(root, a.readOnly)
	return nil
}

// closeVolume closes the mount point; files that are open on it stay open.
func (a *attachment) closeVolume() {
	if a.root != nil {
		a.root.Close()
	}
	a.root, a.vol = nil, nil
}

// Volume is the mounted file system, nil if attached without mounting.
func (a *attachment) Volume() workload.Volume { return a.vol }

// TakeReport returns what attaching reported: retries as warnings, figures and
// messages of the tool.
func (a *attachment) TakeReport() engine.Report { return a.report.Take() }

// Trim asks the system to release the unused blocks of the volume, so that the
// image takes less space on the host, and reports how much less. macOS has no such
// call: it trims while mounting, which the report notes.
func (a *attachment) Trim(ctx context.Context) (t engine.Report, err error) {
	c := a.c
	if err := c.CheckSame(ctx, "trimming"); err != nil {
		return t, err
	}
	switch {
	case a.vol == nil || a.readOnly:
		return t, fmt.Errorf("trimming %q: the volume is not mounted for writing", c.File)
	case c.e.isApple():
		t.Note("trim", "not asked for: macOS trims a volume of its own accord, when it mounts it")
		return t, nil
	// If our volume were gone, the call would trim the file system of the mount
	// point.
	case !a.isMounted():
		return t, fmt.Errorf("trimming %q: its volume is no longer mounted", c.File)
	}
	err = c.measureFreed(ctx, &t, func() error {
		n, err := c.e.host.Trim(ctx, a.point)
		switch {
		case errors.Is(err, errors.ErrUnsupported) && c.spec.Encrypted() && c.format.Name == diskimage.UDRW:
			t.Warn("free space was not given back: every block of an encrypted raw image is written when it is made")
		case err != nil:
			return fmt.Errorf("trimming %q: %w", c.File, err)
		default:
			t.Note("trimmed", strconv.FormatInt(n, 10))
		}
		return nil
	})
	return t, err
}

// logMargin is how much earlier than the wanted time the log is read from: the
// query has whole seconds.
const logMargin = time.Second

// ReportAfterDetach is what APFS logged of trimming the volume while it was
// attached ("trim_log"), or why that is not known ("trim_log_unknown"):
// accounts without administrator rights may not read the log. Reading the log
// takes seconds: the caller does it once for each attachment, outside of timed
// steps, and this engine does not try again after a failure.
func (a *attachment) ReportAfterDetach(ctx context.Context) (t engine.Report) {
	e := a.c.e
	if len(e.o.Log) == 0 || a.mounted.Type != "apfs" || a.readOnly {
		return t
	}
	if e.noLog == "" {
		list, err := e.readTrimLog(ctx, a.start.Add(-logMargin), a.device.Device)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			e.noLog = "the system's log could not be read: " + reasonOf(err)
		case len(list) == 0:
			t.Note("trim_log_unknown", "the system's log has no line of trimming this volume")
		}
		t.Note("trim_log", strings.Join(list, "\n"))
	}
	// An empty value is no note.
	t.Note("trim_log_unknown", e.noLog)
	return t
}

// CheckLog returns why APFS's messages in the system's log cannot be read, as
// [attachment.ReportAfterDetach] does; nil if they can. Without a log the error
// matches [errors.ErrUnsupported].
func (e *Engine) CheckLog(ctx context.Context) error {
	if len(e.o.Log) == 0 {
		return fmt.Errorf("reading the system's log: this system does not log trims: %w", errors.ErrUnsupported)
	}
	_, err := e.readTrimLog(ctx, e.o.Clock.Wall().Add(-logMargin), "/dev/disk0") // any device: the lines are not used
	return err
}

// readTrimLog asks log(1) once: more tries would keep the run waiting.
func (e *Engine) readTrimLog(ctx context.Context, since time.Time, device string) (list []string, err error) {
	err = e.run(ctx, &engine.Report{}, call{doing: "reading", object: "the system's log", tries: 1,
		cmd: command.TrimLog(since), check: func(out []byte) (err error) {
			list, err = command.ParseTrims(out, device)
			return err
		}})
	return list, err
}

// politeTries is the number of detaches without force: at once, then after 0.5
// s, 1 s and 2 s.
const politeTries = 4

// Detach unmounts and detaches. It asks hdiutil, then diskutil, which on macOS
// 27 succeeds where hdiutil prints "couldn't unmount - Resource busy"
// (autopkg#1069), then hdiutil several times more; with force, by force, so
// that open files do not hold the image. Device numbers are reused: before each
// try it checks that the device still belongs to the image, and at the end that
// it is gone. Every try but the first is a warning. After an error the image is
// still attached, and Detach may be called again.
func (a *attachment) Detach(ctx context.Context, force bool) (engine.Report, error) {
	if !a.detached {
		a.closeVolume() // an open folder would keep the volume busy
		if err := a.detach(ctx, force); err != nil {
			if a.point != "" && a.isMounted() {
				if err := a.openVolume(); err != nil {
					a.report.Warn("%v", err)
				}
			}
			return a.report.Take(), err
		}
	}
	a.c.open, a.c.Attached = nil, false
	if a.server != 0 { // warnings of the tool are about the kill
		a.report.Warnings = nil
	}
	return a.report.Take(), nil
}

// isMounted reports whether our mount point still shows the device that we
// mounted.
func (a *attachment) isMounted() bool {
	m, ok, err := a.c.e.host.mountedOn(a.point)
	return err == nil && ok && m.Source == a.mounted.Source
}

// attempt is one way to detach.
type attempt struct {
	line  string
	args  command.Args  // without the device
	pause time.Duration // before it
	name  string        // for the warning
}

// Commands that detach, and the name of another try.
const (
	hdiutilDetach = "hdiutil detach"
	diskutilEject = "diskutil eject"
	again         = "again"
)

// attempts are the ways to detach, the gentlest first: force may lose what was
// not written yet. Once eject did what hdiutil had refused, it comes first: each
// refusal costs time.
func (a *attachment) attempts(force bool) []attempt {
	list := []attempt{{line: hdiutilDetach, name: "by hdiutil"}}
	if len(a.c.e.o.Diskutil) > 0 {
		list = append(list, attempt{line: diskutilEject, name: "by diskutil eject"})
	}
	if a.c.e.ejectsFirst {
		slices.Reverse(list)
	}
	if force {
		return append(list, attempt{line: hdiutilDetach, args: command.Args{Force: true}, name: "with force"})
	}
	for n := range politeTries - 1 {
		list = append(list, attempt{line: hdiutilDetach, pause: firstPause << n, name: again})
	}
	return list
}

// detach makes the attempts, and then checks once more whether the image is
// attached: a tool may fail and yet detach it. After a failure of hdiutil
// that is not "busy" it is not asked again without force. The time before the
// last attempt counts as retries.
func (a *attachment) detach(ctx context.Context, force bool) error {
	var last, polite error
	clock := a.c.e.o.Clock
	start, before := clock.Now(), a.report
	for i, try := range a.attempts(force) {
		if try.name == again && !isTransient(polite) {
			break
		}
		if i > 0 {
			a.report.Warn("detaching did not succeed and was tried %s: %s", try.name, reasonOf(last))
			if err := clock.Sleep(ctx, try.pause); err != nil {
				return errors.Join(last, err)
			}
			a.report.Asked += try.pause // counts unless there is another try
		}
		if ended, err := a.isDetached(ctx, last); ended || err != nil {
			return err
		}
		if i > 0 {
			a.report.Retried, a.report.Asked = before.Retried+clock.Now()-start, before.Asked
			a.report.Retries++
			a.report.Note("detach_tries", strconv.Itoa(i+1))
		}
		try.args.Device = a.disk
		last = a.c.e.run(ctx, &a.report, call{doing: "detaching", object: a.c.File, tries: 1,
			cmd: command.New(try.line, try.args), check: func([]byte) error { return a.checkGone(ctx) }})
		if last == nil {
			a.c.e.ejectsFirst = a.c.e.ejectsFirst || polite != nil && try.line == diskutilEject
			return a.finish()
		} else if ctx.Err() != nil {
			return last
		}
		if try.line == hdiutilDetach {
			polite = last
		}
	}
	if ended, err := a.isDetached(ctx, last); ended || err != nil {
		return err
	}
	if e, ok := errors.AsType[*ToolError](last); ok {
		e.Hint = fmt.Sprintf("close what uses the volume, then: hdiutil detach %s -force", a.disk)
	}
	return last
}

// isDetached reports whether the image is not attached any more, after the
// error of the last attempt, and then ends the attachment. Else it updates the
// device. Before the first attempt our mount of the same device proves that the
// image is attached without asking a tool; later the list of attached images
// does.
func (a *attachment) isDetached(ctx context.Context, last error) (bool, error) {
	if last == nil && a.mounted.Source != "" && a.isMounted() {
		return false, nil
	}
	at, ok, err := a.c.findAttached(ctx, &a.report, a.disk)
	switch {
	case err != nil:
		return false, errors.Join(last, fmt.Errorf("checking which image %s belongs to: %w", a.disk, err))
	case ok:
		a.disk, err = at.Disk()
		return false, err
	case last == nil:
		a.report.Warn("the image was already detached by somebody else")
	default:
		a.report.Warn("the tool failed, and yet the image is detached: %s", reasonOf(last))
	}
	return true, a.finish()
}

// checkGone checks a detach that succeeded: the volume is not mounted, and the
// device is gone or belongs to another image.
func (a *attachment) checkGone(ctx context.Context) error {
	if a.point != "" {
		if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
			return errors.Join(fmt.Errorf("%w: the volume is still mounted", ErrNoResult), err)
		}
	}
	if !a.c.e.host.Exists(a.disk) {
		return nil
	}
	at, ok, err := a.c.findAttached(ctx, &a.report, a.disk)
	if err == nil && ok && diskOf(at) == a.disk {
		err = fmt.Errorf("%w: the image is still attached", ErrNoResult)
	}
	return err
}

// finish marks the attachment as detached and removes the mount point, never a
// volume mounted there. Some tools have already removed it.
func (a *attachment) finish() error {
	if a.point != "" {
		if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
			return errors.Join(fmt.Errorf("removing the mount point %q: a volume is mounted on it", a.point), err)
		}
		if err := os.Remove(a.point); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the mount point: %w", err)
		}
	}
	a.point, a.detached = "", true
	return nil
}

// abandon detaches what a failed attach may have left. An image that is mounted
// elsewhere than on our mount point is not ours.
func (a *attachment) abandon(ctx context.Context, cause error) error {
	a.closeVolume()
	if _, ran := errors.AsType[*ToolError](cause); a.foreign || a.disk == "" && (!ran || classOf(cause) == Missing) {
		return a.finish()
	}
	at, ok, err := a.c.findLate(ctx, &a.report, a.disk, cause)
	if err != nil {
		err = fmt.Errorf("checking whether %q is still attached: %w", a.c.File, err)
	}
	for _, p := range at.MountPoints() {
		if !a.isPoint(p) {
			err = fmt.Errorf("leaving %q attached: another process has mounted it on %q", a.c.File, p)
		}
	}
	if !ok || err != nil {
		return errors.Join(err, a.finish())
	}
	return a.detach(ctx, true)
}
