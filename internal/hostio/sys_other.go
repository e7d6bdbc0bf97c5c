//go:build !linux && !darwin

package hostio

import "io/fs"

// Other systems: files cannot be opened, loudly. A benchmark that ran on
// emulated flushes and caches would be a lie.

type alignment struct {
	possible, inPlace bool
	mem, off          int
}

func sysOpenat(int, string, OpenOptions) (int, error)             { return -1, ErrUnsupported }
func sysOpenFolder(int, string) (int, error)                      { return -1, ErrUnsupported }
func sysOpenDirect(int, string, OpenOptions) (int, error)         { return -1, ErrUnsupported }
func sysAlign(int, bool) (Stat, alignment, error)                 { return Stat{}, alignment{}, ErrUnsupported }
func sysReadv(int, [3][]byte, int64) (int, error)                 { return 0, ErrUnsupported }
func sysWritev(int, [3][]byte, int64) (int, error)                { return 0, ErrUnsupported }
func sysNoCache(int) error                                        { return ErrUnsupported }
func sysClose(int) error                                          { return ErrUnsupported }
func sysPread(int, []byte, int64) (int, error)                    { return 0, ErrUnsupported }
func sysPwrite(int, []byte, int64) (int, error)                   { return 0, ErrUnsupported }
func sysTruncate(int, int64) error                                { return ErrUnsupported }
func sysFlock(int, bool) error                                    { return ErrUnsupported }
func sysFstat(int) (Stat, error)                                  { return Stat{}, ErrUnsupported }
func sysLstatat(int, string) (Stat, error)                        { return Stat{}, ErrUnsupported }
func sysSync(int, SyncMode) (SyncMode, error)                     { return SyncNone, ErrUnsupported }
func sysAllocate(int, int64, int64) error                         { return ErrUnsupported }
func sysPunch(int, int64, int64) error                            { return ErrUnsupported }
func sysDrop(int, int64, int64) error                             { return ErrUnsupported }
func sysEvict(int, int64, int64) error                            { return ErrUnsupported }
func sysResident(int, int64, int64) (float64, error)              { return 0, ErrUnsupported }
func sysMapMemory(int) (use, all []byte, err error)               { return nil, nil, ErrUnsupported }
func sysUnmapMemory([]byte)                                       {}
func sysSpread(int) error                                         { return ErrUnsupported }
func sysStatfs(int) (free, total int64, fsType string, err error) { return 0, 0, "", ErrUnsupported }

// StatOf turns what Dir.Stat and Dir.Lstat return into a [Stat]; here without
// allocated size and identity.
func StatOf(fi fs.FileInfo) Stat { return Stat{Size: fi.Size(), Mode: fi.Mode()} }
