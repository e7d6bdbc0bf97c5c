package workload

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Values of <sys/resource.h>.
const (
	prioDarwinThread = 3      // PRIO_DARWIN_THREAD
	prioDarwinBG     = 0x1000 // PRIO_DARWIN_BG
	iopolSet         = 1      // IOPOL_CMD_SET
	iopolDisk        = 0      // IOPOL_TYPE_DISK
	iopolThread      = 1      // IOPOL_SCOPE_THREAD
	iopolUtility     = 4      // IOPOL_UTILITY
)

// setThreadQoS puts the thread where macOS puts work of that class: background
// is throttled I/O on the efficiency cores, utility is the I/O tier below normal.
func setThreadQoS(qos string) error {
	if qos == QoSBackground {
		if err := unix.Setpriority(prioDarwinThread, 0, prioDarwinBG); err != nil {
			return fmt.Errorf("setting priority: %w", err)
		}
		return nil
	}
	policy := struct{ scope, kind, policy int32 }{iopolThread, iopolDisk, iopolUtility}
	if _, _, e := unix.Syscall(unix.SYS_IOPOLICYSYS, iopolSet, uintptr(unsafe.Pointer(&policy)), 0); e != 0 {
		return fmt.Errorf("setting I/O policy: %w", e)
	}
	return nil
}

// qosNote is what weakens a number that was taken with qos.
func qosNote(string) string { return "" }
