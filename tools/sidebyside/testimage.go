package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// imageBlock is what files in the test image start at multiples of, as in a
// file system.
const imageBlock = 4096

// writeTestImage writes n bytes: the files below a folder, in an order that
// depends on their names alone, again and again. With the folder of Go, the
// sources and programs of one release are the same bytes for everybody.
func writeTestImage(w io.Writer, folder string, n int64) error {
	var names []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err == nil && len(names) == 0 {
		err = errors.New("no files")
	}
	if err != nil {
		return fmt.Errorf("making the test image of %q: %w", folder, err)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(orderKey(folder, a), orderKey(folder, b)) })
	out := bufio.NewWriterSize(w, 1<<20)
	for i, left := 0, n; left > 0; i++ {
		data, err := os.ReadFile(names[i%len(names)])
		if err != nil {
			return fmt.Errorf("making the test image: %w", err)
		}
		data = append(data, make([]byte, -len(data)&(imageBlock-1))...)
		data = data[:min(int64(len(data)), left)]
		_, _ = out.Write(data) // Flush returns its error
		if left -= int64(len(data)); i == len(names) && left == n {
			return fmt.Errorf("making the test image of %q: all files are empty", folder)
		}
	}
	return out.Flush()
}

// orderKey mixes the folders, so that any part of the image is like the whole.
func orderKey(folder, path string) string {
	sum := sha256.Sum256([]byte(filepath.ToSlash(strings.TrimPrefix(path, folder))))
	return string(sum[:])
}
