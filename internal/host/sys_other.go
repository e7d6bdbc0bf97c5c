//go:build !linux && !darwin

package host

import (
	"context"
	"fmt"
	"time"

	"dmgbench/internal/result"
)

// Other systems: what Go itself knows, and nothing made up.

func gather(context.Context, *result.Host) {}

func disk(context.Context, string) result.Disk { return result.Disk{} }

func bootID() string { return "" }

func osVersion() string { return "" }

func memory() (physical, limit int64) { return 0, 0 }

// Suspended is not known here: [ErrUnsupported].
func Suspended() (time.Duration, error) { return 0, fmt.Errorf("reading sleep: %w", ErrUnsupported) }

// InhibitSleep is not possible here: [ErrUnsupported].
func InhibitSleep() (release func(), how string, err error) {
	return nil, "", fmt.Errorf("inhibiting sleep: %w", ErrUnsupported)
}

// Lock is not possible here: [ErrUnsupported].
func Lock(stateDir string) (release func(), err error) {
	return nil, fmt.Errorf("locking %q: %w", stateDir, ErrUnsupported)
}
