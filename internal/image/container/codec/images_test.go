package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// appleImage is a UDIF image that Apple's tools made, taken apart just enough to test codecs with it:
// package udif is for reading images, and imports codec.
type appleImage struct {
	Name   string
	SHA256 string // of the device, in hexadecimal
	Size   int    // of the device, in bytes
	Runs   []appleRun
}

// appleRun is one run of an image's tables.
type appleRun struct {
	Type          uint32
	Start, Length int // on the device, in bytes
	Payload       []byte
}

// readAppleImages returns the UDIF images that the README in the folder describes and that need no passphrase.
func readAppleImages(folder string) ([]appleImage, error) {
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		return nil, err
	}
	var images []appleImage
	for line := range strings.Lines(string(page)) {
		columns := strings.Split(line, "|")
		if len(columns) < 7 || strings.TrimSpace(columns[3]) != "-" ||
			!strings.HasSuffix(strings.TrimSpace(columns[1]), ".dmg") {
			continue
		}
		im := appleImage{Name: strings.TrimSpace(columns[1]), SHA256: strings.Trim(columns[5], " `")}
		if err := im.read(filepath.Join(folder, im.Name)); err != nil {
			return nil, fmt.Errorf("reading image %q: %w", im.Name, err)
		}
		images = append(images, im)
	}
	return images, nil
}

var tables = regexp.MustCompile(`<data>\s*(bWlza[A-Za-z0-9+/=\s]*)</data>`)

// read lists the runs of the file. It does not parse the property list: data with the mark mish is a table.
func (im *appleImage) read(name string) error {
	file, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	be := binary.BigEndian
	if len(file) < 512 || string(file[len(file)-512:len(file)-508]) != "koly" {
		return fmt.Errorf("no trailer")
	}
	koly := file[len(file)-512:]
	fork, plist := be.Uint64(koly[24:]), file[be.Uint64(koly[216:]):]
	im.Size = int(be.Uint64(koly[492:])) * 512
	for _, match := range tables.FindAllSubmatch(plist[:be.Uint64(koly[224:])], -1) {
		mish, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(match[1]), nil)))
		if err != nil {
			return err
		}
		first, offset := be.Uint64(mish[8:]), be.Uint64(mish[24:])+fork
		for runs := mish[204:]; len(runs) >= 40; runs = runs[40:] {
			at, length := offset+be.Uint64(runs[24:]), be.Uint64(runs[32:])
			run := appleRun{Type: be.Uint32(runs), Start: int(first+be.Uint64(runs[8:])) * 512,
				Length: int(be.Uint64(runs[16:])) * 512}
			if run.Type == 1 || run.Type >= 0x80000000 && run.Type < 0xffffffff {
				run.Payload = file[at : at+length]
			}
			im.Runs = append(im.Runs, run)
		}
	}
	return nil
}
