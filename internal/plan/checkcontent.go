package plan

import (
	"cmp"
	"path"
	"slices"

	"dmgbench/internal/units"
)

// sealedFormats are the formats whose images hold what they held when they were made.
var sealedFormats = []string{"UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI", "UDTO"}

// makes is the format that a convert step makes in a case, "" of other steps and
// where nobody has said it.
func (s *Step) makes(c *Settings) string {
	if s.Do != "convert" {
		return ""
	}
	return cmp.Or(s.Format, c.ConvertTo)
}

// content checks what the step works on: file sets, files, inputs, containers.
func (f *follower) content(s *Step, b *stage) {
	switch s.Do {
	case "write":
		name := cmp.Or(s.Files, f.k.Settings.Files)
		switch {
		case name == "" && f.marred["files"]:
			f.full = false
		case name == "":
			f.full = false
			f.atStep(s, "files", "write: the case %q names no file set", f.k.ID).hintf("give files = \"…\" here, or in [io]")
		case f.p.fileSet(name) == nil:
			f.full = false
			if s.Files != "" {
				f.hintName(f.atStep(s, "files", "there is no file set %q", name), name, "file sets", f.fileSetNames())
			}
		default:
			f.fileLimit(s, f.p.fileSet(name).largest(), name)
		}
	case "read", "verify", "delete":
		f.pool(s, b)
	case "mkdir":
		if b.folders[path.Clean(s.Dir)] {
			f.atStep(s, "dir", "mkdir: the folder %q is there already", s.Dir)
		}
	case "copy", "stream":
		f.source(s)
		f.destination(s)
	case "resize":
		f.lower(s)
	case "convert", "transfer", "damage":
		if _, taken := f.stages[s.As]; taken {
			f.atStep(s, "as", "%s: the name %q is taken", s.Do, s.As)
		}
		f.converts(s)
	}
}

// converts checks that a convert step knows what it makes.
func (f *follower) converts(s *Step) {
	switch to := s.makes(&f.k.Settings); {
	case s.Do != "convert":
	case to == "" && !f.marred["settings"]:
		f.atStep(s, "format", "convert: nothing says to which format (case %q)", f.k.ID).hintf("give format = \"…\" here, or convert_to in [image]")
	case s.BandSize > 0 && to != "" && to != "UDSB":
		f.atStep(s, "band_size", "convert: only UDSB has bands, the case %q converts to %s", f.k.ID, to)
	}
}

// pool checks that there are files to read, verify or delete.
func (f *follower) pool(s *Step, b *stage) {
	box := f.e.boxes[s.On]
	if b.batches == 0 && (box == nil || len(box.named) == 0) {
		f.atStep(s, "empty", "%s before anything is written", s.Do).hintf("put { do = \"write\" } before it")
		return
	}
	if !f.full || box == nil || len(f.p.Changes) > 0 || f.marred["files"] {
		return
	}
	files := box.pool(s.Batch)
	sets := map[int]bool{}
	for _, x := range files {
		sets[x.set] = true
	}
	switch {
	case len(files) == 0 && !(s.All && len(box.named) > 0):
		f.atStep(s, "empty", "%s: every file has been deleted by then", s.Do)
	case s.LastSets > len(sets):
		f.atStep(s, "sets", "delete: last_sets = %d, but the batch has %d sets left", s.LastSets, len(sets))
	case s.Largest > len(files):
		f.atStep(s, "largest", "delete: largest = %d, but the batch has %d files left", s.Largest, len(files))
	}
}

// source checks what copy and stream read.
func (f *follower) source(s *Step) {
	box := f.e.boxes[s.On]
	if box == nil || !f.full {
		return
	}
	if _, ok := box.named[s.From]; ok {
		return
	}
	var have []string
	for name := range box.named {
		have = append(have, name)
	}
	slices.Sort(have)
	if s.Do == "copy" {
		for _, in := range f.p.Inputs {
			have = append(have, in.Name)
		}
		if slices.Contains(have, s.From) {
			f.fileLimit(s, f.p.inputSize(s.From), s.From)
			return
		}
	}
	f.hintName(f.atStep(s, "from", "%s: there is no %q to read at this point", s.Do, s.From), s.From, "files to read", have)
	f.e.boxes[s.On].named[s.From] = 0
}

// destination checks what copy and stream make.
func (f *follower) destination(s *Step) {
	if box := f.e.boxes[s.On]; box != nil && f.full {
		if _, there := box.named[s.To]; there {
			f.atStep(s, "to", "%s: the file %q is there already", s.Do, s.To).hintf("write to another name, or delete all before it")
		}
	}
}

// fat32File is the largest file of FAT32: its length has 32 bits (Microsoft,
// FAT32 File System Specification 1.03, DIR_FileSize).
const fat32File = units.Bytes(1<<32 - 1)

// fileLimit reports files that the file system cannot hold at any size of the
// volume; where it is one of several, only that it is out of question.
func (f *follower) fileLimit(s *Step, size units.Bytes, name string) {
	list := f.k.Settings.Filesystems
	if size <= fat32File || !slices.Contains(list, "FAT32") {
		return
	}
	if len(list) > 1 {
		if at := f.settingAt("filesystem"); f.first("file limit", name) {
			f.warn(at.off, "filesystem", "files of %s are too large for FAT32, which ends at %s", size, fat32File).hintf("leave FAT32 out of the preference")
		}
		return
	}
	f.atStep(s, "file limit", "%s: %q has files of %s, and FAT32 ends at %s", s.Do, name, size, fat32File).
		hintf("use exFAT, or smaller files")
}

// largest is the size of the largest file that the set can have.
func (fs FileSet) largest() units.Bytes {
	var n units.Bytes
	for _, p := range fs.Parts {
		n = max(n, p.High)
		for _, s := range p.Sizes {
			n = max(n, s)
		}
	}
	return n
}

// inputSize is the size that the plan gives for an input, 0 if it gives none.
func (p *Plan) inputSize(name string) units.Bytes {
	for _, in := range p.Inputs {
		if in.Name == name {
			return in.Size
		}
	}
	return 0
}

// apart reports steps behind one gate that would write to one named container:
// of the case's own, each gets books of its own.
func (f *follower) apart(steps []Step) {
	writes := map[string]bool{}
	for i := range steps {
		s := &steps[i]
		if s.On == "" || s.Do == "read" {
			continue
		}
		if writes[s.On] {
			f.atStep(s, "gate", "parallel: two steps write to the container %q at once", s.On).hintf("only one of them can; reads may stand beside it")
		}
		writes[s.On] = true
	}
}
