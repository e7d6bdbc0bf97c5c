package workload

import (
	"fmt"
	"runtime"

	"dmgbench/internal/result"
)

// Qualities of service of the threads that do file I/O, after the classes that
// macOS throttles by.
const (
	QoSDefault    = "default"
	QoSUtility    = "utility"
	QoSBackground = "background"
)

// lockThread locks the goroutine to a thread of the requested quality of
// service. A thread with a changed priority is not unlocked: it ends with its
// goroutine.
//
// Only the threads that do the I/O get it, by the policies that taskpolicy(8)
// sets for a whole program: other work of the program, and the tools that it
// starts, would be throttled, too.
func lockThread(qos string) (release func(), err error) {
	runtime.LockOSThread()
	if qos == QoSDefault {
		return runtime.UnlockOSThread, nil
	}
	if err = setThreadQoS(qos); err != nil {
		err = fmt.Errorf("setting quality of service %q: %w", qos, err)
	}
	return func() {}, err
}

// achievedQoS is what the system made of the quality of service of the calling
// thread; nil where the default was requested and no other was found.
func achievedQoS(qos string) *result.Achieved {
	found, err := threadQoS()
	if qos == QoSDefault && (err != nil || found == qos) {
		return nil
	}
	if err != nil {
		found = FoundUnknown
	}
	return &result.Achieved{Asked: qos, Achieved: found}
}

// What setpriority(2) and iopolicysys of macOS take: values of
// <sys/resource.h>, and of xnu's sys/resource_private.h for the commands, which
// libSystem gives the system call of setiopolicy_np(3).
const (
	prioDarwinThread = 3      // PRIO_DARWIN_THREAD
	prioDarwinProc   = 4      // PRIO_DARWIN_PROCESS
	prioDarwinBG     = 0x1000 // PRIO_DARWIN_BG
	iopolGet         = 1      // IOPOL_CMD_GET
	iopolSet         = 2      // IOPOL_CMD_SET
	iopolDisk        = 0      // IOPOL_TYPE_DISK
	iopolThread      = 1      // IOPOL_SCOPE_THREAD
	iopolUtility     = 4      // IOPOL_UTILITY
)

// ioPolicy is struct _iopol_param_t.
type ioPolicy struct{ scope, kind, policy int32 }
