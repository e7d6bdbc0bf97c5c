package workload

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Linux has no such classes. Utility and background are imitated with I/O and
// processor priorities of the thread: ioprio_set(2) lowest best-effort and
// idle, nice 10 and 19.
const (
	ioprioThread     = 1       // IOPRIO_WHO_PROCESS, with id 0 the calling thread
	ioprioBestEffort = 2 << 13 // IOPRIO_CLASS_BE
	ioprioIdle       = 3 << 13 // IOPRIO_CLASS_IDLE
)

// setThreadQoS lowers the priorities of the calling thread.
func setThreadQoS(qos string) error {
	class, nice := ioprioBestEffort|7, 10
	if qos == QoSBackground {
		class, nice = ioprioIdle, 19
	}
	if _, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, ioprioThread, 0, uintptr(class)); e != 0 {
		return e
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

// threadQoS is what the calling thread has: "default", or its priorities.
func threadQoS() (string, error) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	io, _, e := unix.Syscall(unix.SYS_IOPRIO_GET, ioprioThread, 0, 0)
	if err != nil || e != 0 {
		return "", errors.Join(err, e)
	}
	text := fmt.Sprintf("nice %d", 20-raw) // the system call cannot give less than 0
	switch class := io &^ (1<<13 - 1); {
	case class == ioprioIdle:
		text += ", I/O idle"
	case class == ioprioBestEffort && io != ioprioBestEffort|4:
		text += fmt.Sprintf(", I/O best effort %d", io&7)
	}
	if text == "nice 0" {
		return QoSDefault, nil
	}
	return text, nil
}

// qosNote is what weakens a number that was taken with another quality of
// service than the default.
const qosNote = "Linux has no quality of service: it is imitated by the priorities of the thread"
