package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Detach flushes, unmounts, releases the device and the process, and deletes the record. When it returns no error,
// everything written is in the container, except for what Lost lists. Without force it leaves an attachment in use as
// it is and returns a [*BusyError]. With force it releases the image in any case, and Lost lists what its users lose;
// a loop device that a process keeps open then exists, without a file system that writes, until that process closes
// it.
func Detach(ctx context.Context, a Attached, force bool) (Lost, error) {
	s, err := openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r, err := s.load(a.ID)
	switch {
	case err != nil:
		return nil, err
	case a.ID == "" || r == nil:
		return nil, fmt.Errorf("detaching %q: %w", a.Image, ErrNotAttached)
	case !r.alive():
		return s.clean(ctx, r), nil
	}
	if force {
		return s.force(ctx, r), nil
	}
	lost, err := s.polite(ctx, r)
	if err != nil {
		return lost, fmt.Errorf("detaching %q: %w", r.Image, err)
	}
	return lost, nil
}

// polite undoes the attachment step by step, and stops at the first step that finds it in use.
func (s *store) polite(ctx context.Context, r *record) (Lost, error) {
	points, err := r.mountPoints()
	if err != nil {
		return nil, err
	}
	var lost Lost
	for _, point := range points {
		unsaved := r.unsaved(point)
		if err := unmount(point); err != nil {
			return unsaved, err
		}
		lost = append(lost, unsaved...)
	}
	if r.Loop >= 0 {
		lost = append(lost, r.flushDevice(len(points) > 0)...)
		if err := s.endLoop(ctx, r); err != nil {
			return lost, err
		}
	}
	s.removeMountPoint(r)
	if err := s.save(r); err != nil {
		return lost, err
	}
	served, err := r.servedMounts()
	if err != nil {
		return lost, err
	}
	for _, point := range served {
		if err := unmount(point); err != nil {
			return lost, err
		}
	}
	if err := waitUntil(ctx, patience, func() (bool, error) { return !r.helperLives(), nil }); err != nil {
		return lost, fmt.Errorf("waiting for process %d to flush and end: %w", r.HelperPID, err)
	}
	return append(lost, s.lastWord(r, false)...), s.forget(r.ID)
}

// unsaved flushes a volume that a kernel driver has mounted, and returns what failed: unmount(2) flushes too, but does
// not report failed writes. In mode fuse the serving process reports them in its last word.
func (r *record) unsaved(point string) Lost {
	if r.Mode == ModeFUSE {
		return nil
	}
	if err := syncVolume(point); err != nil {
		return Lost{notSaved(point, err)}
	}
	return nil
}

// flushDevice flushes what unmounting wrote to the device, or programs if it was not mounted, and returns what failed,
// earlier writeback by the kernel included.
func (r *record) flushDevice(mounted bool) (lost Lost) {
	if r.ReadOnly {
		return nil
	}
	nodes := []string{r.Partition}
	if !mounted && r.Device != r.Partition {
		nodes = append(nodes, r.Device)
	}
	for _, node := range nodes {
		f, err := os.Open(node)
		if err == nil {
			err = errors.Join(retryEINTR(f.Sync), f.Close())
		}
		if err != nil {
			lost = append(lost, notSaved(node, err))
		}
	}
	return lost
}

// notSaved is a line of Lost about a failed flush.
func notSaved(what string, err error) string {
	return fmt.Sprintf("what was written last to %q may not be in the image: %v", what, err)
}

// endLoop clears the device unless a process has it open. It checks first because the kernel does not take back a
// request to clear.
func (s *store) endLoop(ctx context.Context, r *record) error {
	if by := holders(r.Device, r.Partition); len(by) > 0 {
		return &BusyError{What: r.Device, Holders: by}
	}
	err := clearLoop(ctx, r, 10*time.Second)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &BusyError{What: r.Device, Holders: holders(r.Device)}
	}
	return err
}

// force undoes the attachment whoever uses it.
func (s *store) force(ctx context.Context, r *record) Lost {
	lost := s.forceVolumes(r, true)
	return append(lost, s.release(ctx, r, false)...)
}

// clean takes away what a dead process, a dead command or another boot left.
func (s *store) clean(ctx context.Context, r *record) Lost {
	if r.Boot != bootID() {
		s.removeMountPoint(r)
		_ = s.forget(r.ID)
		return nil
	}
	// Here it must not matter that whoever asked has given up meanwhile.
	ctx = context.WithoutCancel(ctx)
	if r.Loop < 0 && r.Mode != ModeFUSE {
		r.adopt()
	}
	// If umount(8) ended its mount, it flushed and wrote its last word.
	dead := r.HelperPID != 0 && !r.helperLives() && !s.ended(r)
	lost := append(s.forceVolumes(r, !dead), s.release(ctx, r, dead)...)
	if dead && r.Complete {
		const died = "the process that served the image had died: what was written and not flushed is lost"
		lost = append(Lost{died}, lost...)
	}
	return lost
}

// undo is clean for an attach that did not come to its end.
func (s *store) undo(r *record) { s.clean(context.Background(), r) }

// forceVolumes takes the mounted volumes away from whoever uses them. In mode fuse the volume is the served mount,
// which release ends: what was written has passed to the process already, and that flushes when it ends.
func (s *store) forceVolumes(r *record, flush bool) (lost Lost) {
	points, _ := r.mountPoints()
	for _, point := range points {
		if r.Mode != ModeFUSE {
			lost = append(lost, forceUnmount(point, flush)...)
			continue
		}
		for _, h := range holders(point) {
			lost = append(lost, openFiles(h, point))
		}
	}
	return lost
}

// release ends device, mount and process, each as far as it exists, and forgets the attachment.
func (s *store) release(ctx context.Context, r *record, dead bool) (lost Lost) {
	if r.Loop >= 0 && r.ours() {
		if err := clearLoop(ctx, r, time.Second); err != nil {
			text := err.Error()
			if by := holders(r.Device); errors.Is(err, os.ErrDeadlineExceeded) {
				text = fmt.Sprintf("%q lives on until whoever uses it ends", r.Device)
				if len(by) > 0 {
					text = (&BusyError{What: r.Device, Holders: by}).Error()
				}
			}
			lost = append(lost, text)
		}
	}
	// MNT_FORCE ends the connection: requests in flight fail, and the process flushes and closes the container.
	served, _ := r.servedMounts()
	for _, point := range served {
		_ = unix.Unmount(point, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW)
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && os.Geteuid() != 0 {
			_ = fusermount(point, "-z")
		}
	}
	if r.helperLives() {
		err := waitUntil(ctx, patience, func() (bool, error) { return !r.helperLives(), nil })
		if err != nil {
			lost = append(lost, "the process that served the image did not end and was killed: "+
				"what it had not flushed is lost")
			_ = unix.Kill(r.HelperPID, unix.SIGKILL)
			_ = waitUntil(ctx, patience, func() (bool, error) { return !r.helperLives(), nil })
		}
	}
	lost = append(lost, s.lastWord(r, dead)...)
	s.removeMountPoint(r)
	_ = s.forget(r.ID)
	return lost
}

// ended reports whether the process exited in the regular way.
func (s *store) ended(r *record) bool {
	_, err := os.Stat(s.path(r.ID + ".end"))
	return err == nil
}

// lastWord reads the failures of the process. A missing file is a failure too, unless the process is known to have
// died.
func (s *store) lastWord(r *record, dead bool) (lost Lost) {
	if r.HelperPID == 0 || dead {
		return nil
	}
	data, err := s.dir.ReadFile(r.ID+".end", 1<<20)
	var word lastWord
	if err == nil {
		err = json.Unmarshal(data, &word)
	}
	if err != nil {
		if !r.Complete {
			return nil
		}
		return Lost{fmt.Sprintf("the process that served the image ended without a word: %v", err)}
	}
	lost = append(lost, word.Failures...)
	if more := word.Count - len(word.Failures); more > 0 {
		lost = append(lost, fmt.Sprintf("and %d more failures", more))
	}
	return lost
}

// fusermount unmounts for a user who may not.
func fusermount(point string, flags ...string) error {
	tool := findTool("fusermount3")
	if tool == "" {
		tool = findTool("fusermount")
	}
	if tool == "" {
		return fmt.Errorf("unmounting %q: fusermount3 is missing (package fuse3): %w", point, unix.EPERM)
	}
	out, err := exec.Command(tool, append(append([]string{"-u"}, flags...), "--", point)...).CombinedOutput()
	if err == nil {
		return nil
	}
	if by := holders(point); len(by) > 0 {
		return fmt.Errorf("unmounting: %w", &BusyError{What: point, Holders: by})
	}
	return fmt.Errorf("unmounting %q: %w: %s", point, err, out)
}

// List returns the attachments. It cleans up dead ones, and returns each of them once more with Dead set, unless
// somebody else released it without a loss.
func List(ctx context.Context) ([]Attached, error) {
	if _, err := os.Stat(RuntimeDir()); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if list, all, err := listAlive(); err != nil || all {
		return list, err
	}
	s, err := openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	records, err := s.all()
	if err != nil {
		return nil, err
	}
	var list []Attached
	for _, r := range records {
		if r.alive() {
			list = append(list, r.view())
			continue
		}
		a := r.Attached
		a.Dead, a.Unfinished, a.MountPoint = true, !r.Complete, r.LastMountPoint
		lost := s.clean(ctx, r)
		a.Warnings = append(a.Warnings, lost...)
		if r.Boot == bootID() && (len(lost) > 0 || !r.Complete) {
			list = append(list, a)
		}
	}
	return list, nil
}

// listAlive lists the attachments without the lock, and reports whether all are alive: only dead and unfinished ones
// have to wait for another command.
func listAlive() (list []Attached, all bool, err error) {
	s, err := openUnlocked()
	if err != nil {
		return nil, false, err
	}
	defer s.close()
	records, err := s.all()
	if err != nil {
		return nil, false, err
	}
	for _, r := range records {
		if !r.alive() {
			return nil, false, nil
		}
		list = append(list, r.view())
	}
	return list, true, nil
}
