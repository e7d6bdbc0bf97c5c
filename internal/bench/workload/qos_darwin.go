package workload

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setThreadQoS puts the thread where macOS puts work of that class: background
// is throttled I/O on the efficiency cores, utility is the I/O tier below
// normal.
func setThreadQoS(qos string) error {
	if qos == QoSBackground {
		return unix.Setpriority(prioDarwinThread, 0, prioDarwinBG)
	}
	policy := ioPolicy{iopolThread, iopolDisk, iopolUtility}
	if _, _, e := unix.Syscall(unix.SYS_IOPOLICYSYS, iopolSet, uintptr(unsafe.Pointer(&policy)), 0); e != 0 {
		return e
	}
	return nil
}

// threadQoS is what the calling thread has: "default", "background", or the
// tier of its disk I/O. taskpolicy(8) may have put the whole process into the
// background.
func threadQoS() (string, error) {
	for _, which := range []int{prioDarwinThread, prioDarwinProc} {
		on, err := unix.Getpriority(which, 0)
		if err != nil {
			return "", err
		}
		if on == 1 {
			return QoSBackground, nil
		}
	}
	policy := ioPolicy{scope: iopolThread, kind: iopolDisk}
	if _, _, e := unix.Syscall(unix.SYS_IOPOLICYSYS, iopolGet, uintptr(unsafe.Pointer(&policy)), 0); e != 0 {
		return "", e
	}
	switch policy.policy {
	case 0, 1: // IOPOL_DEFAULT, IOPOL_IMPORTANT
		return QoSDefault, nil
	case iopolUtility:
		return "utility (disk I/O)", nil
	}
	return fmt.Sprintf("I/O policy %d", policy.policy), nil
}

// qosNote is empty: macOS has these classes.
const qosNote = ""
