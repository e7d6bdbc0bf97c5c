package container

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/hostio"
)

// UDIFSpec says how CreateUDIF writes an image.
type UDIFSpec struct {
	Format   string                  // UDRO, UDCO, UDZO, UDBZ, ULFO, ULMO or UFBI
	Level    int                     // of compression, as package codec has it; 0 is Apple's choice
	Workers  int                     // chunks compressed at once; 0 is as many as there are processors
	Progress func(done, total int64) // bytes of the device, if set; called from one goroutine
	// Encryption wraps the image: its tables and trailer are encrypted, too.
	Encryption Encryption
}

// CreateUDIF writes what is on dev as a read-only image, whole or not at all,
// and flushes it. name must not exist. Nothing may write to dev meanwhile.
// What is free in an image that says so stays free.
func CreateUDIF(ctx context.Context, dir *hostio.Dir, name string, dev blockdev.Device, s UDIFSpec) error {
	o := udif.WriteOptions{Format: udif.Format(s.Format), Codec: chunkCodec{}, Level: s.Level, Workers: s.Workers, Progress: s.Progress, Map: mapOf(dev)}
	if err := s.Encryption.check(s.Format, 0); err != nil {
		return fmt.Errorf("creating %q: %w", filepath.Join(dir.Path(), name), err)
	}
	return s.Encryption.createFile(dir, name, 0, func(f target) error {
		w := bufio.NewWriterSize(&appender{f: f}, 1<<20)
		_, err := udif.Write(ctx, w, wholeReads{dev}, dev.Size(), o)
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			return fmt.Errorf("writing %q: %w", filepath.Join(dir.Path(), name), err)
		}
		return nil
	})
}

// appender writes a file from its start to its end.
type appender struct {
	f  io.WriterAt
	at int64
}

func (a *appender) Write(p []byte) (int, error) {
	n, err := a.f.WriteAt(p, a.at)
	a.at += int64(n)
	return n, err
}

// wholeReads leaves out the end of the device behind a read that is complete.
type wholeReads struct{ io.ReaderAt }

func (r wholeReads) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if n == len(p) && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
