package workload

import (
	"fmt"
	"runtime"
	"sync"

	"dmgbench/internal/result"
)

// Qualities of service of the threads that do file I/O, after the classes that
// macOS throttles by.
const (
	QoSDefault    = "default"
	QoSUtility    = "utility"
	QoSBackground = "background"
)

// probeQoS sets the quality of service on a thread that ends afterwards, and
// returns what the system made of it: what the workers' threads will have. It
// is nil where the default was requested and found.
//
// Only the threads that do the I/O get it, by the policies that taskpolicy(8)
// sets for a whole program: other work of the program, and the tools that it
// starts, would be throttled, too.
func probeQoS(qos string) (found *result.Achieved, err error) {
	found = &result.Achieved{Asked: qos}
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		if qos != QoSDefault {
			err = setThreadQoS(qos)
		}
		if err == nil {
			found.Achieved, err = threadQoS()
		}
	})
	wg.Wait()
	switch {
	case err != nil && qos != QoSDefault:
		return nil, fmt.Errorf("setting quality of service %q: %w", qos, err)
	case err != nil || found.Achieved == found.Asked && qos == QoSDefault:
		return nil, nil // not requested
	}
	return found, nil
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
