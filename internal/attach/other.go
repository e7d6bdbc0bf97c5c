//go:build !linux

package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
)

// refuse is the error of all that needs Linux.
func refuse(doing string) error {
	return fmt.Errorf("%s on %s: %w: use the system's own hdiutil", doing, runtime.GOOS, errors.ErrUnsupported)
}

// RuntimeDir is empty: images are not attached here.
func RuntimeDir() string { return "" }

// DefaultMountRoot is empty: volumes are not mounted here.
func DefaultMountRoot() string { return "" }

// Loops is false here.
func Loops() bool { return false }

// Attach refuses.
func Attach(context.Context, Request) (Attached, error) {
	return Attached{}, refuse("attaching an image")
}

// Detach refuses.
func Detach(context.Context, Attached, bool) (Lost, error) {
	return nil, refuse("detaching an image")
}

// List returns an empty list.
func List(context.Context) ([]Attached, error) { return nil, nil }

// Mount refuses.
func Mount(context.Context, Attached, Request) (Attached, error) {
	return Attached{}, refuse("mounting a volume")
}

// Unmount refuses.
func Unmount(context.Context, Attached, bool) error { return refuse("unmounting a volume") }

// Trim refuses.
func Trim(context.Context, string) (int64, error) { return 0, refuse("trimming a volume") }

// Make refuses.
func Make(context.Context, string, string, string) error {
	return refuse("making a file system")
}

// Grow refuses.
func Grow(context.Context, Attached) error { return refuse("growing a file system") }

// CanGrow refuses.
func CanGrow(string) error { return refuse("growing a file system") }

// HelperMain refuses.
func HelperMain([]string) int {
	fmt.Fprintln(os.Stderr, refuse("serving an image"))
	return 1
}

func kernelDriver(string) bool { return false }
