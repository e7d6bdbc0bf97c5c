package exfat

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

var errBroken = errors.New("broken device")

// requireEveryFailure fails each operation of do on a copy of the device in turn, and requires that do returns the
// error of the operation.
func requireEveryFailure(t *testing.T, dev *blockdevtest.MemDevice, do func(dev *blockdevtest.MemDevice) error) {
	t.Helper()
	for fail := 1; ; fail++ {
		require.Less(t, fail, 5000)
		broken, n, failed := dev.Clone(), 0, blockdevtest.Op("")
		broken.Hook = func(op blockdevtest.Op, _, _ int64) error {
			if n++; n == fail {
				failed = op
				return errBroken
			}
			return nil
		}
		err := do(broken)
		if failed == "" {
			require.NoError(t, err)
			require.Greater(t, fail, 1)
			return
		}
		require.ErrorIs(t, err, errBroken, "operation %d, a %s", fail, failed)
	}
}

// Each operation works on a volume of its own: one that is mounted before the device can fail.
func TestEveryFailureIsReported(t *testing.T) {
	base, v := damaged(t)
	require.NoError(t, v.Mkdir("e"))
	require.NoError(t, v.Unmount())
	mounted := func(do func(v *Volume) error) func(*blockdevtest.MemDevice) error {
		return func(dev *blockdevtest.MemDevice) error {
			hook := dev.Hook
			dev.Hook = nil
			v, err := Mount(dev, MountOptions{})
			require.NoError(t, err)
			dev.Hook = hook
			return do(v)
		}
	}
	for name, do := range map[string]func(*blockdevtest.MemDevice) error{
		"format": func(dev *blockdevtest.MemDevice) error { return Format(dev, FormatOptions{Label: "x"}) },
		"check": func(dev *blockdevtest.MemDevice) error {
			_, err := Check(dev, CheckOptions{})
			return err
		},
		"free space": func(dev *blockdevtest.MemDevice) error {
			_, _, err := FreeSpace(dev, 0)
			return err
		},
		"mount and list": func(dev *blockdevtest.MemDevice) error {
			v, err := Mount(dev, MountOptions{ReadOnly: true})
			if err != nil {
				return err
			}
			return v.Walk("", func(string, Info) error { return nil }, nil)
		},
		"create, write and sync": mounted(func(v *Volume) error {
			f, err := v.Create("d/new", 40_000)
			if err != nil {
				return err
			}
			if _, err := f.WriteAt(noise(9, 50_000), 3000); err != nil {
				return err
			}
			return f.Sync()
		}),
		"make, move and remove": mounted(func(v *Volume) error {
			for _, step := range []func() error{
				func() error { return v.Mkdir("e/dir") },
				func() error { return v.Rename("c", "e/dir/moved") },
				func() error { return v.Replace("e/dir/moved", "f") },
				func() error { return v.Remove("e/dir") },
				v.Sync,
			} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		}),
		"truncate": mounted(func(v *Volume) error {
			f, err := v.Open("f")
			if err != nil {
				return err
			}
			if err := f.Truncate(5000); err != nil {
				return err
			}
			return f.Truncate(6000)
		}),
		"read": mounted(func(v *Volume) error {
			f, err := v.Open("f")
			if err != nil {
				return err
			}
			_, err = f.ReadAt(make([]byte, 40_000), 0)
			return err
		}),
		"evict": mounted(func(v *Volume) error {
			f, err := v.Open("f")
			if err != nil {
				return err
			}
			return f.Evict()
		}),
		"trim": mounted(func(v *Volume) error {
			_, err := v.Trim(0)
			return err
		}),
		"shrink": mounted(func(v *Volume) error { return v.Resize(v.MinSize()) }),
		"unmount": mounted(func(v *Volume) error {
			if err := v.Mkdir("last"); err != nil {
				return err
			}
			return v.Unmount()
		}),
	} {
		t.Run(name, func(t *testing.T) { requireEveryFailure(t, base, do) })
	}
}
