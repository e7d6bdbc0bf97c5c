package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/hostio"
)

// medium is a store with what layouts do to it.
type medium struct {
	f    store
	mode hostio.SyncMode
}

func (m medium) sync() error {
	_, err := m.f.Sync(m.mode)
	return err
}

func (m medium) put(p []byte, at int64) error {
	_, err := m.f.WriteAt(p, at)
	return err
}

// zeros makes n bytes from at read as zeros, by a hole or by writing them.
func (m medium) zeros(at, n int64) error {
	if n <= 0 {
		return nil
	}
	err := m.f.PunchHole(at, n)
	if !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	p := make([]byte, min(n, 1<<20))
	for ; n > 0; at, n = at+int64(len(p)), n-int64(len(p)) {
		if err := m.put(p[:min(n, int64(len(p)))], at); err != nil {
			return err
		}
	}
	return nil
}

// copyBytes copies n bytes inside the file. Zeros become holes again, in blocks of copyZeros bytes: a copy that takes more
// than what it is of would be no compaction.
func (m medium) copyBytes(to, from, n int64) error {
	p := make([]byte, min(n, 1<<20))
	for done := int64(0); done < n; done += int64(len(p)) {
		part := p[:min(n-done, int64(len(p)))]
		if k, err := m.f.ReadAt(part, from+done); k < len(part) {
			return short(err)
		}
		if err := m.lay(part, to+done); err != nil {
			return err
		}
	}
	return nil
}

// lay is put with holes where p is zeros.
func (m medium) lay(p []byte, at int64) error {
	blank := func(from int) bool {
		block := p[from:min(from+copyZeros, len(p))]
		return bytes.Equal(block, zeroBlock[:len(block)])
	}
	for from := 0; from < len(p); {
		hole, to := blank(from), from
		for to < len(p) && blank(to) == hole {
			to = min(to+copyZeros, len(p))
		}
		err := error(nil)
		if hole {
			err = m.zeros(at+int64(from), int64(to-from))
		} else {
			err = m.put(p[from:to], at+int64(from))
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// short names the end of a file where content should be.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("file ends inside the container: %w", ErrCorrupt)
	}
	return err
}

// unknownError is met where a container is of a kind that is not understood:
// nothing is wrong with it, as far as can be told.
type unknownError struct{ what string }

func (e *unknownError) Error() string { return e.what }

func unknown(format string, args ...any) error { return &unknownError{fmt.Sprintf(format, args...)} }

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrCorrupt)
}
