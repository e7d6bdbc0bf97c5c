package container

import (
	"errors"
	"fmt"
	"io"
)

// Codes of a sector in a bitmap.
const (
	asifUnwritten = 0
	asifWritten   = 1
	asifStrange   = 2 // never seen; said to read as zeros
)

// written calls do for the runs of blocks of chunk i that are written or not,
// by the bitmap, in bytes from the start of the chunk. strict refuses codes
// that were never seen, of which one may be read as not written.
func (a *asif) written(i int64, strict bool, do func(in, n int64, written bool) error) error {
	group := a.group(i / a.head.perGroup)
	blocks := a.head.chunk / a.head.block
	first := i % a.head.perGroup * blocks
	p := make([]byte, (first+blocks-1)/4-first/4+1)
	if n, err := a.f.ReadAt(p, int64(group[a.head.perGroup].Load())*a.head.chunk+first/4); n < len(p) {
		return short(err)
	}
	is := func(b int64) (bool, error) {
		code := p[(first+b)/4-first/4] >> ((first + b) % 4 * 2) & 3
		if code > asifStrange || strict && code == asifStrange {
			return false, &UnsupportedError{Path: a.f.Path(), Doing: "reading", Found: fmt.Sprintf("Apple sparse image format (ASIF) with bitmap code %d", code)}
		}
		return code == asifWritten, nil
	}
	for b := int64(0); b < blocks; {
		now, err := is(b)
		from := b
		for same := now; err == nil && same == now; {
			if b++; b == blocks {
				break
			}
			same, err = is(b)
		}
		if err != nil {
			return err
		}
		if err := do(from*a.head.block, (b-from)*a.head.block, now); err != nil {
			return err
		}
	}
	return nil
}

// readPartly reads a chunk of which only those blocks count that are written.
func (a *asif) readPartly(i int64, p []byte, in int64) error {
	at, _ := a.find(i)
	have, err := a.f.ReadAt(p, at+in)
	if have < len(p) && !errors.Is(err, io.EOF) {
		return err
	}
	return a.written(i, false, func(from, n int64, written bool) error {
		low, high := max(from, in), min(from+n, in+int64(len(p)))
		switch {
		case low >= high:
		case !written:
			clear(p[low-in : high-in])
		case high-in > int64(have):
			return short(io.EOF)
		}
		return nil
	})
}

// settle completes a partly written chunk with zeros, so that all of it counts.
func (a *asif) settle(i int64) error {
	l := &a.locks[i%asifLocks]
	l.Lock()
	defer l.Unlock()
	at, partly := a.find(i)
	if !partly {
		return nil // another call did it
	}
	err := a.written(i, true, func(in, n int64, written bool) error {
		if written {
			return nil
		}
		return a.zeros(at+in, n)
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set(a.slot(i), asifWhole|uint64(at/a.head.chunk))
	return nil
}
