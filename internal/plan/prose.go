package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Prose describes in a sentence what a step does, as a methods section prints it, without its number and full stop: "write
// 160 files to it". What the case decides (workers, sync, cache …) is mentioned only where the step decides otherwise.
// Steps inside a repeat or parallel are not told: the caller prints them below it.
func (s *Step) Prose() string {
	tell, ok := prose[s.Do]
	if !ok {
		return s.Do
	}
	text := tell(s, s.object())
	if with := s.overrides(); len(with) > 0 {
		text += ", with " + strings.Join(with, ", ")
	}
	if s.Expect == "fail" {
		text += "; this has to fail"
	}
	return text
}

// object is the container that the step acts on, in words.
func (s *Step) object() string {
	if s.On != "" {
		return "“" + s.On + "”"
	}
	return "the image"
}

// prose holds the sentence of each kind of step; it names everything that [Step] has for the kind.
var prose = map[string]func(s *Step, image string) string{
	"create": func(*Step, string) string { return "create the image and its file system" },
	"attach": attachProse,
	"detach": func(_ *Step, image string) string { return "unmount and detach " + image },
	"remount": func(s *Step, image string) string {
		text := "detach and attach " + image + " again"
		if s.Times > 1 {
			text += fmt.Sprintf(", %d times over", s.Times)
		}
		if s.AtLeast > 0 {
			text += ", then leave it alone for " + s.AtLeast.String()
		}
		return text
	},
	"settle":  settleProse,
	"mkdir":   func(s *Step, image string) string { return fmt.Sprintf("make the folder %q on %s", s.Dir, image) },
	"write":   writeProse,
	"read":    readProse,
	"verify":  func(s *Step, _ string) string { return "compare every byte of " + batchProse(s.Batch) },
	"delete":  deleteProse,
	"trim":    func(_ *Step, image string) string { return "give the free space of the volume back to " + image },
	"compact": compactProse,
	"resize": func(s *Step, image string) string {
		return fmt.Sprintf("change the nominal size of %s to %s", image, s.Size)
	},
	"convert": convertProse,
	"transfer": func(s *Step, image string) string {
		return fmt.Sprintf("copy %s%s as “%s”", image, to(s.Place), s.As)
	},
	"check": checkProse,
	"damage": func(s *Step, image string) string {
		return fmt.Sprintf("copy %s as “%s” and damage the copy (%s)", image, s.As, s.Kind)
	},
	"xattr": xattrProse,
	"measure": func(_ *Step, image string) string {
		return "note the size on disk of " + image + ", its bands and the free space"
	},
	"copy": func(s *Step, _ string) string {
		return fmt.Sprintf("copy %q to the file %q on the volume", s.From, s.To)
	},
	"stream":   func(s *Step, _ string) string { return fmt.Sprintf("%s the file %q to %q", s.Direction, s.From, s.To) },
	"pause":    func(s *Step, _ string) string { return "pause: " + strings.TrimSuffix(s.Message, ".") },
	"repeat":   func(s *Step, _ string) string { return fmt.Sprintf("%d times over:", s.Times) },
	"parallel": func(*Step, string) string { return "all at once, from one start:" },
}

func to(place string) string {
	if place == "" {
		return ""
	}
	return " to the place “" + place + "”"
}

func attachProse(s *Step, image string) string {
	text := "attach and mount " + image
	if s.Mount != nil && !*s.Mount {
		text = "attach " + image + " without mounting it"
	}
	if s.ReadOnly != nil && *s.ReadOnly {
		text += " read-only"
	}
	if s.Verify != nil {
		text += map[bool]string{true: ", verifying its checksum", false: ", without verifying its checksum"}[*s.Verify]
	}
	return text
}

func settleProse(s *Step, image string) string {
	text := "leave it alone"
	if s.AtLeast > 0 {
		text += " for " + s.AtLeast.String()
	}
	if s.UntilStable {
		text += ", until the size of " + image + " on disk stops changing"
		if s.AtMost > 0 {
			text += ", " + s.AtMost.String() + " at most"
		}
	}
	return text
}

func writeProse(s *Step, image string) string {
	files := "the files"
	if s.Files != "" {
		files = "the files “" + s.Files + "”"
	}
	return "write " + files + " to " + image + ", each timed"
}

func batchProse(batch string) string {
	if batch == "all" {
		return "all files"
	}
	return "the files that were written last"
}

func readProse(s *Step, _ string) string {
	text := "read " + batchProse(s.Batch) + ", each timed"
	switch s.Order {
	case "shuffled":
		text += ", in random order"
	case "as-listed":
		text += ", in the order of the list"
	}
	return text
}

func deleteProse(s *Step, _ string) string {
	from := "the files"
	switch s.Batch {
	case "last":
		from = "the files that were written last"
	case "all":
		from = "all files"
	}
	switch {
	case s.LastSets > 0:
		return fmt.Sprintf("delete the files of the last %s", counted(s.LastSets, "set"))
	case s.Largest > 0:
		return fmt.Sprintf("delete the %s of those written last", counted(s.Largest, "largest file"))
	case s.Every:
		return "delete every other of " + from
	case s.Share > 0:
		return fmt.Sprintf("delete %s of %s, drawn at random", s.Share, from)
	case s.Batch == "last":
		return "delete the files that were written last"
	}
	return "delete all files"
}

func counted(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func compactProse(s *Step, image string) string {
	if s.Battery == "allow" {
		return "compact " + image + ", on battery as well"
	}
	return "compact " + image
}

func convertProse(s *Step, image string) string {
	text := "convert " + image + " to " + cmp.Or(s.Format, "the case's format")
	if s.Encryption != "" && s.Encryption != "none" {
		text += " with " + s.Encryption
	}
	if s.BandSize > 0 {
		text += " with bands of " + s.BandSize.String()
	}
	return text + to(s.Place) + " as “" + s.As + "”"
}

func checkProse(s *Step, image string) string {
	text := "check " + image
	if s.What == "volume" {
		text = "check the file system of " + image
	}
	if s.Repair {
		text += " and repair it"
	}
	return text
}

func xattrProse(s *Step, image string) string {
	switch s.Action {
	case "set":
		return fmt.Sprintf("set the extended attribute %q of %s to %q", s.Attr, image, s.Value)
	case "remove":
		return fmt.Sprintf("remove the extended attribute %q of %s", s.Attr, image)
	}
	return "list the extended attributes of " + image
}

// overrides are the keys of the case that the step has values of its own for.
func (s *Step) overrides() []string {
	var with []string
	add := func(said bool, text string) {
		if said {
			with = append(with, text)
		}
	}
	add(s.Workers > 0, fmt.Sprintf("workers %d", s.Workers))
	add(s.Sync != "", "sync "+s.Sync)
	add(s.Cache != "", "cache "+s.Cache)
	add(s.Block > 0, "block "+s.Block.String())
	add(s.Codec != "", "codec "+s.Codec)
	add(s.Level > 0, fmt.Sprintf("level %d", s.Level))
	add(s.Threads > 0, counted(s.Threads, "thread"))
	return with
}

// Prose writes the selector in words: "format is UDRW or UDSB, encryption is none".
func (s Selector) Prose() string {
	var parts []string
	for _, c := range s {
		parts = append(parts, c.Key+" is "+strings.Join(c.Values, " or "))
	}
	return strings.Join(parts, ", ")
}

// Prose describes a file set: how many files of which sizes, in which order and of which data.
func (f *FileSet) Prose() string {
	var parts []string
	for _, part := range f.Parts {
		parts = append(parts, part.prose())
	}
	text := strings.Join(parts, "; ")
	switch f.Order {
	case "shuffled":
		text += "; in random order within each set"
	case "shuffled-all":
		text += "; in random order"
	case "as-listed":
		text += "; in the order of the list"
	}
	switch f.Data {
	case "mixed":
		text += fmt.Sprintf("; %s of each 4 KiB zeros, the rest random", f.Compressible)
	case "zero":
		text += "; of zeros"
	case "text":
		text += "; of words, which compress"
	default:
		text += "; of random bytes"
	}
	return text
}

func (p *FilePart) prose() string {
	sets := ""
	if p.Sets > 1 {
		sets = fmt.Sprintf("%d sets of ", p.Sets)
	}
	if len(p.Sizes) == 0 {
		return fmt.Sprintf("%s%d files of random size from %s to %s (%s)", sets, p.Count, p.Low, p.High, p.Spread)
	}
	if len(p.Sizes) == 1 {
		if p.Sets > 1 {
			return fmt.Sprintf("%d files of %s", p.Sets, p.Sizes[0])
		}
		return "one file of " + p.Sizes[0].String()
	}
	return fmt.Sprintf("%s%d files of %s to %s", sets, len(p.Sizes), slices.Min(p.Sizes), slices.Max(p.Sizes))
}
