package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/units"
)

// formatSetup is what the command line asks of the comparison of formats.
type formatSetup struct {
	dir              string // folder in which a folder of our own is made
	parts            []string
	size, encodeSize int64 // bytes of the test image, and of its beginning that is encoded
	memorySizes      []int64
	levels           []int // of zlib
	pairs            int
	seed             uint64
	image            string // raw image to take instead of a made one
	fstoolImages     bool   // decode what fstool made, too
	hdiutil          string // program; "" builds it
	fstool           string
	qemu             string
	sevenZip         string
	openssl          string
	format           string
}

// formatParts are the parts of the comparison.
var formatParts = []string{"decode", "encode", "aes", "codecs", "memory"}

// sharedMemory is a file system without a disk.
const sharedMemory = "/dev/shm"

// formatPlace is where files do not wait for a disk.
func formatPlace() string {
	if info, err := os.Stat(sharedMemory); runtime.GOOS == "linux" && err == nil && info.IsDir() {
		return sharedMemory
	}
	return os.TempDir()
}

func parseFormats(args []string, status io.Writer) (*formatSetup, error) {
	s := &formatSetup{}
	f := flag.NewFlagSet("sidebyside formats", flag.ContinueOnError)
	f.SetOutput(status)
	f.StringVar(&s.dir, "dir", formatPlace(), "put files in this `folder`; one in memory leaves the disk out")
	parts := f.String("parts", strings.Join(formatParts, ","), "what is measured, comma-separated")
	size := f.String("size", "1 GiB", "size of the image that is decoded")
	encode := f.String("encode", "128 MiB", "how much of it is encoded")
	memory := f.String("memory", "512 MiB,4 GiB", "sizes of images of which the largest memory is compared, comma-separated")
	levels := f.String("levels", "6", "levels of zlib at which images are encoded, comma-separated; both sides get the same")
	f.IntVar(&s.pairs, "pairs", minPairs, "pairs that are kept, after one that is discarded")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the test image")
	f.StringVar(&s.image, "image", "", "take the beginning of this raw image `file` instead of making one")
	f.BoolVar(&s.fstoolImages, "fstool-images", false, "decode an image that fstool made, too")
	f.StringVar(&s.hdiutil, "hdiutil", "", "our hdiutil `program`; empty: build it")
	f.StringVar(&s.fstool, "fstool", "fstool", "the fstool `program`")
	f.StringVar(&s.qemu, "qemu-img", "qemu-img", "the qemu-img `program`")
	f.StringVar(&s.sevenZip, "7zz", "7zz", "the 7-Zip `program`")
	f.StringVar(&s.openssl, "openssl", "openssl", "the OpenSSL `program`")
	f.StringVar(&s.format, "format", "text", "text or json")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%w: unexpected argument %q", errUsage, f.Arg(0))
	}
	s.parts = strings.Split(*parts, ",")
	err := s.fill(*size, *encode, *memory, *levels)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return s, nil
}

// fill reads the flags that are lists or quantities.
func (s *formatSetup) fill(size, encode, memory, levels string) error {
	sizes := []int64{}
	for text := range strings.SplitSeq(size+","+encode+","+memory, ",") {
		n, err := units.ParseBytes(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		sizes = append(sizes, int64(n)&^(makerBlock-1))
	}
	s.size, s.encodeSize, s.memorySizes = sizes[0], sizes[1], sizes[2:]
	for text := range strings.SplitSeq(levels, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 9 {
			return fmt.Errorf("level %q: want 1 to 9", text)
		}
		s.levels = append(s.levels, n)
	}
	return nil
}

func (s *formatSetup) check() error {
	for _, part := range s.parts {
		if !slices.Contains(formatParts, part) {
			return fmt.Errorf("part %q: want some of %q", part, formatParts)
		}
	}
	switch {
	case s.pairs < minPairs:
		return fmt.Errorf("%d pairs: want at least %d", s.pairs, minPairs)
	case min(s.size, s.encodeSize, slices.Min(s.memorySizes)) < 1<<20:
		return fmt.Errorf("an image of less than 1 MiB measures the start of programs")
	case s.encodeSize > s.size:
		return fmt.Errorf("encoding %d bytes of %d", s.encodeSize, s.size)
	case s.format != "text" && s.format != "json":
		return fmt.Errorf("format %q: want text or json", s.format)
	}
	return nil
}

// does reports whether a part is asked for.
func (s *formatSetup) does(part string) bool { return slices.Contains(s.parts, part) }
