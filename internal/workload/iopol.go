package workload

// What setpriority(2) and iopolicysys of macOS take: values of <sys/resource.h>, and of xnu's sys/resource_private.h
// for the commands, which libSystem gives the system call behind setiopolicy_np(3).
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
