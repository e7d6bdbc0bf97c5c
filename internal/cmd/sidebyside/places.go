package main

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/units"
)

// Where mounted images are measured.
const (
	placeDisk   = "disk"   // the folder of --dir
	placeMemory = "memory" // a tmpfs of our own
)

// wholeFiles asks for one call a file.
const wholeFiles = "file"

// callSize reads the bytes of a call.
func callSize(text string) (int64, error) {
	n, err := units.ParseBytes(strings.TrimSpace(text))
	if err == nil && n < 1 {
		err = fmt.Errorf("calls of %q: want at least 1 B", text)
	}
	return int64(n), err
}

// calling is a call's size for people.
func calling(block int64) string {
	switch {
	case block == 0:
		return wholeFiles
	case block%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", block>>20)
	case block%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", block>>10)
	}
	return units.Bytes(block).String()
}

func listed(blocks []int64) string {
	var words []string
	for _, n := range blocks {
		words = append(words, calling(n))
	}
	return strings.Join(words, ", ")
}

// fillMounted reads the lists that only this comparison has.
func (s *setup) fillMounted(blocks, places string) error {
	for text := range strings.SplitSeq(blocks, ",") {
		n := int64(0)
		if text = strings.TrimSpace(text); text != wholeFiles {
			var err error
			if n, err = callSize(text); err != nil {
				return err
			}
		}
		if slices.Contains(s.blocks, n) {
			return fmt.Errorf("calls of %q are named twice", text)
		}
		s.blocks = append(s.blocks, n)
	}
	for _, name := range strings.Split(places, ",") {
		if name != placeDisk && name != placeMemory {
			return fmt.Errorf("place %q: want %s or %s", name, placeDisk, placeMemory)
		}
		if slices.Contains(s.places, name) {
			return fmt.Errorf("place %q is named twice", name)
		}
		s.places = append(s.places, name)
	}
	return nil
}
