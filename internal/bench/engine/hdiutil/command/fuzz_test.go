package command_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

func seeds(f *testing.F) {
	f.Add([]byte(list(entities(apfs...))))
	f.Add([]byte("licence\n" + list(entities(bare...))))
	f.Add([]byte(list("<key>images</key><array><dict>" + entities(inInfo...) + "</dict></array>")))
	f.Add([]byte(list("<key>Format</key><string>UDZO</string><key>Properties</key><dict><key>Compressed</key><true/></dict>")))
	f.Add([]byte("encrypted: YES\n"))
	f.Add([]byte("Reclaimed 4 MB out of 1023.6 GB possible.\n"))
	f.Add([]byte("hdiutil: WARNING: 'hdiutil attach ...' is deprecated. Please use 'diskutil image attach ...' instead.\nx (35)\n"))
}

func FuzzAttach(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, out []byte) {
		a, err := command.ParseAttach(out)
		if err != nil {
			return
		}
		disk, err := a.Disk()
		if err != nil || !strings.HasPrefix(disk, "/dev/") || strings.Contains(disk, "..") {
			t.Fatalf("disk %q: %v", disk, err)
		}
		a.Candidate()
	})
}

func FuzzInfo(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, out []byte) {
		i, err := command.ParseInfo(out)
		if err != nil && i.Images != nil {
			t.Fatal("images with an error")
		}
		for _, a := range i.Images {
			_, _ = a.Disk()
		}
	})
}

func FuzzRegistry(f *testing.F) {
	f.Add([]byte(registry("file:///p/a%20b.dmg", "disk4", "disk4s1")))
	f.Add([]byte("\n"))
	seeds(f)
	f.Fuzz(func(t *testing.T, out []byte) {
		images, err := command.ParseRegistry(out)
		if err != nil && images != nil {
			t.Fatal("images with an error")
		}
		for _, a := range images {
			disk, err := a.Disk()
			if err != nil || !strings.HasPrefix(disk, "/dev/") || strings.Contains(disk, "..") {
				t.Fatalf("disk %q: %v", disk, err)
			}
		}
	})
}

func FuzzImageInfo(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, out []byte) {
		i, err := command.ParseImageInfo(out)
		if err == nil && i.Format == "" && i.Size <= 0 || i.Size < 0 {
			t.Fatalf("no result without an error: %+v", i)
		}
	})
}

func FuzzMessages(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, out []byte) {
		s := command.ParseMessages(string(out))
		for _, line := range append(s.Lines, s.Deprecated...) {
			if line == "" || !utf8.ValidString(line) || len(line) > 410 || strings.ContainsAny(line, "\n\r\x1b\x00") {
				t.Fatalf("%q", line)
			}
		}
		_ = s.Last()
	})
}

func FuzzTrims(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"eventMessage":"spaceman_scan_free_blocks:4106: disk9 scan took 0.1 s, trims took 0.1 s"}` + "\n" + `{"count":1,"finished":1}` + "\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		list, err := command.ParseTrims(out, "/dev/disk9s1")
		if err != nil && list != nil || len(list) > 32 {
			t.Fatalf("%d lines, %v", len(list), err)
		}
		for _, line := range list {
			if !strings.Contains(line, "disk9") && !strings.HasSuffix(line, "…") || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\x1b\x00") {
				t.Fatalf("%q", line)
			}
		}
	})
}
