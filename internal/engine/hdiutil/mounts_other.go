//go:build !linux && !darwin

package hdiutil

import "dmgbench/internal/hostio"

// systemMounts refuses: nothing is known of the mount table of this system.
func systemMounts() ([]Mount, error) { return nil, hostio.ErrUnsupported }
