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

// Detach flushes and unmounts, ends the device and the process, and forgets the attachment. When it returns without an
// error, everything that was written is in the container, unless Lost says otherwise. Politely it leaves what is in
// use as it is: a [*BusyError]. With force the image is released whoever uses it, and Lost says what they lose; a loop
// device that a process keeps open lives on, without a file system that writes, until that process is done with it.
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

// polite undoes the attachment step by step, and stops at what is in use.
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

// unsaved flushes a volume that a kernel's driver has mounted, and says if that fails: unmount(2) flushes as well, and
// keeps to itself what it could not write. The process behind a volume in mode fuse has a last word of its own.
func (r *record) unsaved(point string) Lost {
	if r.Mode == ModeFUSE {
		return nil
	}
	if err := syncVolume(point); err != nil {
		return Lost{notSaved(point, err)}
	}
	return nil
}

// flushDevice flushes what unmounting wrote to the device, or programs when it was not mounted, and says if that or
// what the kernel wrote back before failed.
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

func notSaved(what string, err error) string {
	return fmt.Sprintf("what was written last to %q may not be in the image: %v", what, err)
}

// endLoop clears the device unless somebody has it open. Looking first matters: a clearing once asked for is not taken
// back by the kernel.
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
	// One whose mount somebody else has ended, by umount(8), flushed and left its last word.
	dead := r.HelperPID != 0 && !r.helperLives() && !s.ended(r)
	lost := append(s.forceVolumes(r, !dead), s.release(ctx, r, dead)...)
	if dead && r.Complete {
		lost = append(Lost{"the process that served the image had died: what was written and not flushed is lost"}, lost...)
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
	// MNT_FORCE ends the connection: requests under way fail, and the process goes on to flush and close the container.
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
			lost = append(lost, "the process that served the image did not end and was killed: what it had not flushed is lost")
			_ = unix.Kill(r.HelperPID, unix.SIGKILL)
			_ = waitUntil(ctx, patience, func() (bool, error) { return !r.helperLives(), nil })
		}
	}
	lost = append(lost, s.lastWord(r, dead)...)
	s.removeMountPoint(r)
	_ = s.forget(r.ID)
	return lost
}

// ended says whether the process came to its end by itself.
func (s *store) ended(r *record) bool {
	_, err := os.Stat(s.path(r.ID + ".end"))
	return err == nil
}

// lastWord reads what the process could not do. None at all is told too, unless it is known to have died.
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

// List returns what is attached. What it finds dead it cleans up, and returns once more with Dead set, unless others
// have released it and nothing was lost by that.
func List(ctx context.Context) ([]Attached, error) {
	if _, err := os.Stat(RuntimeDir()); errors.Is(err, os.ErrNotExist) {
		return nil, nil
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
