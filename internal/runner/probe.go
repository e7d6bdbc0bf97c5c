package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/hostio"
)

// probesFolder is where engines are tried, in the state folder: what a killed
// try leaves there is found by the next one and by [Clean].
const probesFolder = "probes"

// Probing gives try a marked folder of its own in the state folder to try an
// engine in, and removes it and what earlier tries have left.
func Probing(stateDir string, at time.Time, try func(*hostio.Dir) error) (err error) {
	path := filepath.Join(stateDir, probesFolder)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making a folder to probe in: %w", err)
	}
	if err := (Cleaning{}).probes(context.Background(), stateDir, io.Discard); err != nil {
		return err
	}
	id := "probe-" + newID(at)
	p, err := openPlace(Place{Name: probesFolder, Path: path}, id, nil)
	if err != nil {
		return err
	}
	held, err := hold(p)
	if err != nil {
		p.close()
		return fmt.Errorf("locking the folder to probe in: %w", err)
	}
	defer held.Close()
	defer func() { err = errors.Join(err, p.remove(id)) }()
	return try(p.dir)
}

// hold locks the marker of a folder for as long as the file is open: whoever is
// killed lets go of it. A file system without locks holds nothing.
func hold(p *place) (*hostio.File, error) {
	f, err := p.dir.Open(markerName, hostio.OpenOptions{Write: true})
	if err != nil {
		return nil, err
	}
	if err := f.TryLock(); err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// probes removes what killed tries of engines have left; those that are
// going on are left alone.
func (c Cleaning) probes(ctx context.Context, stateDir string, w io.Writer) error {
	path := filepath.Join(stateDir, probesFolder)
	list, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the folder of probes: %w", err)
	}
	var errs []error
	for _, f := range list {
		id, ok := strings.CutPrefix(f.Name(), workFolder(""))
		if !ok || !strings.HasPrefix(id, "probe-") {
			continue
		}
		errs = append(errs, c.probe(ctx, Place{Name: probesFolder, Path: path}, id, w))
	}
	return errors.Join(errs...)
}

func (c Cleaning) probe(ctx context.Context, at Place, id string, w io.Writer) error {
	p, err := openPlace(at, id, nil)
	if errors.Is(err, fs.ErrNotExist) { // it has ended meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	held, err := hold(p)
	if err != nil {
		p.close()
		if errors.Is(err, hostio.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("locking the folder of a probe: %w", err)
	}
	defer held.Close()
	if err := c.release(ctx, p.dir.Path(), id, w); err != nil {
		p.close()
		return err
	}
	if err := p.remove(id); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: removed what it left\n", id)
	return err
}
