package container

import (
	"context"
	"errors"
	"path/filepath"

	"dmgbench/internal/container/files"
	"dmgbench/internal/hostio"
)

// Usage is the space that a container takes on the host.
type Usage = files.Usage

// UsageOf returns the space that a container takes on the host, open or not. Of a sparse image that is
// open for writing elsewhere it counts the bands of the last flush. Of an encrypted one it counts
// none: that needs its table.
func UsageOf(dir *hostio.Dir, name string) (Usage, error) {
	c, err := probe(dir, name)
	switch {
	case err != nil:
		return Usage{}, err
	case c.unsupported != "":
		path := filepath.Join(dir.Path(), name)
		return Usage{}, &UnsupportedError{Path: path, Found: c.unsupported, Doing: "measuring"}
	case c.format == UDSB || c.encryption != "":
		return files.UsageOf(context.Background(), dir, name, c.info.bandSize, c.info.size)
	}
	img, err := openFile(dir, name, c, OpenOptions{ReadOnly: true})
	if err != nil {
		return Usage{}, err
	}
	u, err := img.Usage()
	return u, errors.Join(err, img.Close())
}
