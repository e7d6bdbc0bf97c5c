//go:build !linux

package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
)

// errElsewhere is the error of all that needs Linux.
var errElsewhere = fmt.Errorf("attaching and mounting images on %s: %w: use the system's own hdiutil", runtime.GOOS,
	errors.ErrUnsupported)

// Loops is false here.
func Loops() bool { return false }

// CheckFUSE refuses.
func CheckFUSE() error { return errElsewhere }

// Attach refuses.
func Attach(context.Context, Request) (Attached, error) { return Attached{}, errElsewhere }

// Detach refuses.
func Detach(context.Context, Attached, bool) (Lost, error) { return nil, errElsewhere }

// List returns an empty list.
func List(context.Context) ([]Attached, error) { return nil, nil }

// Mount refuses.
func Mount(context.Context, Attached, Request) (Attached, error) { return Attached{}, errElsewhere }

// Unmount refuses.
func Unmount(context.Context, Attached, bool) error { return errElsewhere }

// Trim refuses.
func Trim(context.Context, string) (int64, error) { return 0, errElsewhere }

// Make refuses.
func Make(context.Context, string, string, string) error { return errElsewhere }

// Grow refuses.
func Grow(context.Context, Attached) error { return errElsewhere }

// CheckGrow refuses.
func CheckGrow(string) error { return errElsewhere }

// HelperMain refuses.
func HelperMain([]string) int {
	fmt.Fprintln(os.Stderr, errElsewhere)
	return 1
}

func kernelDriver(string) bool { return false }
