package hdiutil

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/image/container"
)

// Errors that a [ToolError] of the class wraps, in addition to those of the
// system.
var (
	ErrAuth     = errors.New("the passphrase is wrong")
	ErrNotImage = errors.New("not a disk image that the tool knows")
	// ErrNoResult means that a tool succeeded without the requested result.
	ErrNoResult = command.ErrNoResult
)

// Class is the kind of a tool's failure: one of the variables below.
type Class = *class

// class is what is known of a kind of failure.
type class struct {
	name  string
	wraps error // by a [ToolError] of the class
	// numbers are errors of macOS that tools print: errno, others of the system
	// (negative ones, and those of IOKit and Disk Arbitration above 0xE0000000),
	// Cocoa's, and those of diskutil (-69…).
	numbers []int
	words   string // of messages in English, in the form of [localized]
	hint    string // what a person can do
}

const hintHelper = "the system's disk image helper is overloaded or gone: try again after a restart"

// The classes.
var (
	Busy = &class{"busy", syscall.EBUSY, []int{16, 26, -47, -69888, -69877, -69879, 0xF8DA0002, 0xF8DA0004, 0xE00002C5,
		0xE00002D5}, "busy|in use|drive not detached|diskarbitration expired|dissent|exclusive access|already attached|" +
		"already mounted",
		"close what uses the image: Spotlight, a shell whose folder is on the volume, another run"}
	// Another process holds the image.
	Locked = &class{"locked", syscall.EAGAIN, []int{35}, "temporarily unavailable|is locked|locked by",
		"another process holds the image: `hdiutil info` lists what is attached"}
	Auth = &class{"wrong passphrase", ErrAuth, []int{80, 81}, "authentication error|authentication failed|" +
		"need authenticator|incorrect pass|wrong pass|invalid pass|bad pass|pass*is incorrect|pass*is wrong|" +
		"pass*not correct|failed to unlock|unable to unlock|while unlocking",
		"give the passphrase that the image was made with: DMGBENCH_PASSPHRASE_FILE names a file that holds it"}
	NoSpace = &class{"no space", syscall.ENOSPC, []int{28, -34, 640, -69820}, "no space|not enough space|out of space|" +
		"not enough*space|insufficient*space|disk full|is full", "make room on the host, or run with --scale"}
	Quota     = &class{"quota", syscall.EDQUOT, []int{69}, "quota", "raise the quota, or use a place on another disk"}
	OpenFiles = &class{"open files", syscall.EMFILE, []int{23, 24}, "too many open files",
		"raise the limit of open files: ulimit -n 4096"}
	TooLarge = &class{"too large", syscall.EFBIG, []int{27, 34, 84}, "too large|too big",
		"the host's file system limits the size of files: use a place on another one"}
	ReadOnly = &class{"read-only file system", syscall.EROFS, []int{30, -44, 642, 0xF8DA000B}, "read-only file system|" +
		"read-only volume|is read-only|is read only|write protected|write-protected", "use a place that can be written to"}
	InputOutput = &class{"input/output error", syscall.EIO, []int{5, 83, -36, 0xE00002CA}, "input/output error|i/o error|" +
		"device error", "look in the system's log for errors of the host's storage"}
	NoMemory = &class{"no memory", syscall.ENOMEM, []int{12, -108, 0xE00002BD}, "allocate memory|out of memory|" +
		"not enough memory|insufficient memory", "close other programs"}
	TimedOut = &class{"timed out", syscall.ETIMEDOUT, []int{60}, "timed out|timeout|time out", hintHelper}
	Exists   = &class{"exists", fs.ErrExist, []int{17, 66, -48, 516}, "file exists|already exists|directory not empty", ""}
	NotFound = &class{"not found", fs.ErrNotExist, []int{2, -35, -43, 260, 0xF8DA0006}, "no such file|" +
		"no such disk|no such volume|not found|does not exist|doesn't exist|couldn't find|could not find|unable to find|" +
		"fail*to find|can't find|cannot find|no longer available", ""}
	Permission = &class{"permission", fs.ErrPermission, []int{13, -54, -61, -5000, 257, 513, -60005, -60007, -60008,
		0xF8DA0009, 0xE00002C1}, "permission denied|access denied|privileges|must be root|requires root|not authorized|" +
		"authorization*refused|authorization*denied|elevat|interaction required|have permission|requires authori",
		"use a folder that this user may write to, and an image without the attribute com.apple.quarantine"}
	// The sandbox or privacy protection.
	NotPermitted = &class{"not permitted", fs.ErrPermission, []int{1, 0xF8DA0008, 0xE00002E2}, "not permitted|not allowed|" +
		"sandbox", "allow the terminal full disk access in System Settings, Privacy & Security, or use another folder"}
	NoFileSystem = &class{"no mountable file system", nil, nil, "mountable file system|mountable volume|" +
		"unrecogni*file system|contains no file system", ""}
	Damaged = &class{"damaged image", container.ErrCorrupt, nil, "corrupt image|data corrupted|image*corrupt|" +
		"image*damaged|damaged*image|invalid checksum|bad checksum|checksum mismatch|checksum*invalid|calculated*expected|" +
		"decompression error|malformed udif|image verification failed|image*truncated",
		"make the image again, or use a copy of it"}
	// A file system check found errors.
	DamagedVolume = &class{"damaged file system", nil, []int{-69845, -69716}, "verify or repair failed|found to be corrupt|" +
		"found corrupt|needs to be repaired", "repair the volume, or make the image again"}
	NotImage = &class{"not an image", ErrNotImage, nil, "not recogni*ed|unable to recogni|not a*disk image|" +
		"unrecogni*image|unknown*image format|isn't a*disk image", ""}
	// A verb, option or format.
	Unsupported = &class{"not supported", errors.ErrUnsupported, []int{19, 45, 78, 102, 0xF8DA000C, 0xE00002C7},
		"not supported|isn't supported|no checksum|cannot be made|unsupported|not implemented|not compactable|" +
			"be compacted|be resized|did not recognize|requires macos|unknown verb|unrecognized verb|invalid verb|unknown subcommand", ""}
	// The helper or the device vanished.
	NoDevice = &class{"device not configured", syscall.ENXIO, []int{6, 0xE00002C0}, "device not configured|no such device",
		hintHelper}
	NoHelper = &class{"helper lost", syscall.ECHILD, []int{10, 9, 32, 4097, 4099, 4101, -308}, "no child process|" +
		"couldn't communicate|could not communicate|couldn't connect|could not connect|a helper|the helper|helper tool|" +
		"connection*invalid|connection*interrupted|lost connection|xpc|storagekitd|diskimagesiod|bad file descriptor|" +
		"broken pipe|interrupted system call|mach error", hintHelper}
	Battery = &class{"on battery", nil, nil, "battery",
		"connect the power adapter, or set in the step battery = \"allow\""}
	Invalid = &class{"invalid argument", syscall.EINVAL, []int{22, 20, 21, 63, -50, 0xF8DA0003, 0xE00002C2},
		"invalid argument|bad argument|be specified|be combined|mutually exclusive|only a single|too many arguments|" +
			"missing argument|invalid value|invalid size|is invalid for|not a valid|not a directory|" +
			"is a directory|name too long|expects|requires|must be|maximum size|minimum size|too small", ""}
	Canceled = &class{"canceled", nil, []int{89, -128, -60006, 3072}, "cancel|user abort", ""} // also by us

	Deadline = &class{"deadline", command.ErrDeadline, nil, "",
		"the tool hung: `hdiutil info` lists an image that it left attached"}
	Killed = &class{"ended by a signal", command.ErrSignal, nil, "",
		"look in the system's log: memory may have run short"}
	Missing  = &class{"tool missing", command.ErrMissing, nil, "", "dmgbench doctor lists the tools of this machine"}
	NoResult = &class{"no result", ErrNoResult, nil, "", ""} // status 0 without the result
	Unknown  = &class{"unknown", nil, nil, "", ""}
)

// verdicts are the classes in which the tool judged the image. In all others it
// could not do what was asked for.
var verdicts = []Class{NoFileSystem, Damaged, DamagedVolume, NotImage}

// ToolError is a tool's failure.
type ToolError struct {
	Doing   string // "attaching"
	Object  string // the container's name
	Class   Class
	Command string // without secrets, which are never arguments
	Status  int    // exit status; -1: it did not run to its end
	Tries   int    // how often it was run
	Message string // the last lines that the tool printed
	Hint    string // what helps, may be empty
	Err     error  // cause, may be nil
}

// Error is `<doing> <object>: <cause>` with the command, its status and its
// message.
func (e *ToolError) Error() string {
	cause, details := e.Class.name, e.Command
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if e.Status >= 0 {
		details += fmt.Sprintf("; status %d", e.Status)
	}
	if e.Tries > 1 {
		details += fmt.Sprintf("; tried %d times", e.Tries)
	}
	if e.Message != "" {
		details += fmt.Sprintf("; it printed %q", e.Message)
	}
	return fmt.Sprintf("%s %q: %s (%s)", e.Doing, e.Object, cause, details)
}

// Advice is the hint.
func (e *ToolError) Advice() string { return e.Hint }

// Unwrap returns the cause and the error that the class wraps.
func (e *ToolError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, e.Class.wraps}, func(err error) bool { return err == nil })
}
