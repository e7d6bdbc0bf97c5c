package plan

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"dmgbench/internal/units"
)

// Keys that several kinds of step share.
var (
	stepWorkers = field("workers", workersKind, func(s *Step) *int { return &s.Workers })
	stepSync    = field("sync", syncKind, func(s *Step) *string { return &s.Sync })
	stepCache   = field("cache", cacheKind, func(s *Step) *string { return &s.Cache })
	stepBlock   = field("block", sizeKind, func(s *Step) *units.Bytes { return &s.Block })
	stepBatch   = field("batch", enum("last", "all"), func(s *Step) *string { return &s.Batch })
	stepAs      = field("as", nameText, func(s *Step) *string { return &s.As }).must()
	stepPlace   = field("place", placeText, func(s *Step) *string { return &s.Place })
	stepFrom    = field("from", pathText, func(s *Step) *string { return &s.From }).must()
	stepTo      = field("to", pathText, func(s *Step) *string { return &s.To }).must()
	stepTimes   = field("times", number[int](1, 100000), func(s *Step) *int { return &s.Times })
)

// stepRows lists every kind of step. It is a function because the rows refer to
// the registry.
func stepRows() []stepKind {
	innerSteps := stepsField(func(s *Step) *[]Step { return &s.Steps })
	return []stepKind{
		{do: "create", needs: needsNew, about: "makes the container and its file system, not attached",
			prose:   func(*Step, string) string { return "create the image and its file system" },
			advance: func(_ *stepChecker, _ *Step, b *containerState) { b.made = true }},
		{do: "attach", needs: needsDetached, about: "attaches and mounts", keys: []key[Step]{
			optional("mount", flagKind, func(s *Step) **bool { return &s.Mount }).or("true"),
			optional("verify", flagKind, func(s *Step) **bool { return &s.Verify }),
			optional("read_only", flagKind, func(s *Step) **bool { return &s.ReadOnly }).or("false")},
			prose: attachProse, estimate: (*estimator).trim,
			advance: func(_ *stepChecker, s *Step, b *containerState) {
				b.attached, b.mounted = true, s.Mount == nil || *s.Mount
				b.readOnly = s.ReadOnly != nil && *s.ReadOnly
			}},
		{do: "detach", needs: needsAttached, about: "unmounts and detaches",
			prose: func(_ *Step, image string) string { return "unmount and detach " + image },
			advance: func(_ *stepChecker, _ *Step, b *containerState) {
				b.attached, b.mounted, b.readOnly = false, false, false
			}},
		{do: "remount", needs: needsVolume,
			about: "detaches and attaches, `times` over, and waits `settle` after each attach",
			keys: []key[Step]{stepTimes.or("1"),
				field("settle", timeKind, func(s *Step) *units.Duration { return &s.AtLeast })},
			prose: remountProse, estimate: (*estimator).trim},
		{do: "settle", needs: needsCreated, about: "waits", finish: finishSettle, prose: settleProse, keys: []key[Step]{
			field("at_least", timeKind, func(s *Step) *units.Duration { return &s.AtLeast }),
			field("until_stable", flagKind, func(s *Step) *bool { return &s.UntilStable }),
			field("at_most", spanKind, func(s *Step) *units.Duration { return &s.AtMost })}},
		{do: "mkdir", needs: needsVolume, about: "makes a new folder, with those above it", changes: changesVolume,
			keys: []key[Step]{field("dir", pathText, func(s *Step) *string { return &s.Dir }).must()},
			prose: func(s *Step, image string) string {
				return fmt.Sprintf("make the folder %q on %s", s.Dir,
					image)
			},
			check:   (*stepChecker).checkFolder,
			advance: func(_ *stepChecker, s *Step, b *containerState) { b.folders[path.Clean(s.Dir)] = true }},
		{do: "write", needs: needsVolume, about: "writes a file set: opens a new batch", changes: changesVolume,
			fills: true,
			files: true, keys: []key[Step]{field("files", nameText, func(s *Step) *string { return &s.Files }),
				stepWorkers, stepSync, stepCache, stepBlock},
			prose: writeProse, check: (*stepChecker).checkFiles, estimate: (*estimator).write,
			advance: func(_ *stepChecker, _ *Step, b *containerState) { b.batches++ }},
		{do: "read", needs: needsVolume, about: "reads a batch back, timed", files: true, keys: []key[Step]{
			stepBatch.or(`"last"`), field("order", enum("same-as-written", "shuffled", "as-listed"),
				func(s *Step) *string { return &s.Order }).or(`"same-as-written"`),
			stepWorkers, stepCache, stepBlock},
			prose: readProse, check: (*stepChecker).checkPool, estimate: (*estimator).read},
		{do: "verify", needs: needsVolume, about: "checks every byte, not a measurement", unique: true,
			keys:  []key[Step]{stepBatch.or(`"last"`)},
			prose: func(s *Step, _ string) string { return "compare every byte of " + batchProse(s.Batch) },
			check: (*stepChecker).checkPool, estimate: (*estimator).read},
		{do: "delete", needs: needsVolume, about: "deletes files, chosen by one of `all`, `last_sets`, `largest`, " +
			"`every_other`, `share`", changes: changesVolume, finish: finishDelete, keys: []key[Step]{
			field("all", flagKind, func(s *Step) *bool { return &s.All }),
			field("last_sets", number[int](1, 100000), func(s *Step) *int { return &s.LastSets }),
			field("largest", number[int](1, 1000000), func(s *Step) *int { return &s.Largest }),
			field("every_other", flagKind, func(s *Step) *bool { return &s.Every }),
			field("share", shareKind, func(s *Step) *units.Share { return &s.Share }), stepBatch},
			prose: deleteProse, check: (*stepChecker).checkPool, estimate: (*estimator).remove},
		{do: "trim", needs: needsVolume, about: "gives the volume's free space back to the container",
			changes: changesVolume, imageOnly: true, estimate: (*estimator).trim,
			prose: func(_ *Step, image string) string { return "give the free space of the volume back to " + image }},
		{do: "compact", needs: needsDetached, about: "compacts the container", changes: changesImage, imageOnly: true,
			keys: []key[Step]{field("battery", enum("refuse", "allow"), func(s *Step) *string { return &s.Battery }).
				or(`"refuse"`)},
			prose: func(s *Step, image string) string {
				return "compact " + image + map[bool]string{true: ", on battery as well"}[s.Battery == "allow"]
			}, estimate: (*estimator).trim},
		{do: "resize", needs: needsDetached, about: "changes the nominal size", changes: changesImage, fills: true,
			imageOnly: true, keys: []key[Step]{field("size", sizeKind, func(s *Step) *units.Bytes { return &s.Size }).
					must()},
			prose: func(s *Step, image string) string {
				return fmt.Sprintf("change the nominal size of %s to %s", image, s.Size)
			}, check: (*stepChecker).checkResize,
			estimate: func(_ *estimator, s *Step, b *containerEstimate, _ *StepTotal) { b.size = s.Size }},
		{do: "convert", needs: needsDetached, about: "makes a new container of another format", imageOnly: true,
			keys: []key[Step]{stepAs, field("format", anyFormat, func(s *Step) *string { return &s.Format }),
				field("encryption", encryptionKind, func(s *Step) *string { return &s.Encryption }).or(`"none"`),
				field("band_size", bandKind, func(s *Step) *units.Bytes { return &s.BandSize }).or(`"default"`),
				stepPlace},
			finish: finishConvert, prose: convertProse, check: (*stepChecker).checkConvert,
			advance: (*stepChecker).makeContainer, estimate: (*estimator).deriveContainer},
		{do: "transfer", needs: needsDetached, about: "copies the container byte for byte", imageOnly: true,
			keys: []key[Step]{stepAs, stepPlace},
			prose: func(s *Step, image string) string {
				return fmt.Sprintf("copy %s%s as “%s”", image, placeProse(s.Place), s.As)
			}, check: (*stepChecker).checkName, advance: (*stepChecker).makeContainer, estimate: (*estimator).
					deriveContainer},
		{do: "check", needs: needsUnmounted, about: "checks container or volume; findings make it fail",
			imageOnly: true,
			keys: []key[Step]{field("what", enum("container", "volume"), func(s *Step) *string { return &s.What }).
				or(`"volume"`),
				field("repair", flagKind, func(s *Step) *bool { return &s.Repair })},
			prose: checkProse},
		{do: "damage", needs: needsDetached, about: "makes a copy and damages the copy", imageOnly: true, untimed: true,
			keys: []key[Step]{stepAs, field("kind", enum("header", "band-missing", "table", "truncated", "volume"),
				func(s *Step) *string { return &s.Kind }).must()},
			prose: func(s *Step, image string) string {
				return fmt.Sprintf("copy %s as “%s” and damage the copy (%s)", image, s.As, s.Kind)
			}, check: (*stepChecker).checkName, advance: (*stepChecker).makeContainer, estimate: (*estimator).
					deriveContainer},
		{do: "xattr", needs: needsCreated, about: "lists, sets or removes an extended attribute of the container",
			imageOnly: true, untimed: true, keys: []key[Step]{
				field("action", enum("list", "set", "remove"), func(s *Step) *string { return &s.Action }).must(),
				field("attr", anyText, func(s *Step) *string { return &s.Attr }), xattrValue()},
			finish: finishXattr, prose: xattrProse},
		{do: "measure", needs: needsCreated, untimed: true, needsPhase: true,
			about: "records allocated size, bands and free space under its `phase` (required)",
			prose: func(_ *Step, image string) string {
				return "note the size on disk of " + image + ", its bands and the free space"
			}},
		{do: "copy", needs: needsVolume, about: "copies an input, or else a file of the volume, to a new file",
			changes: changesVolume, fills: true, files: true,
			keys: []key[Step]{stepFrom, stepTo, stepSync, stepCache, stepBlock},
			prose: func(s *Step, _ string) string {
				return fmt.Sprintf("copy %q to the file %q on the volume", s.From, s.To)
			}, check: (*stepChecker).checkCopy, estimate: (*estimator).copyFile},
		{do: "stream", needs: needsVolume,
			about:   "compresses or decompresses a file of the volume to a new file of the volume",
			changes: changesVolume, fills: true, files: true, keys: []key[Step]{stepFrom, stepTo,
				field("direction", enum("compress", "decompress"), func(s *Step) *string { return &s.Direction }).
					or(`"compress"`),
				field("codec", codecKind, func(s *Step) *string { return &s.Codec }),
				field("level", number[int](1, 22), func(s *Step) *int { return &s.Level }),
				field("threads", workersKind, func(s *Step) *int { return &s.Threads })},
			prose: func(s *Step, _ string) string {
				return fmt.Sprintf("%s the file %q to %q", s.Direction, s.From,
					s.To)
			},
			check: (*stepChecker).checkCopy, estimate: (*estimator).copyFile},
		{do: "pause", needs: needsNone, untimed: true, noExpect: true,
			about: "a checkpoint: detaches all containers and stops until `resume`, which attaches them again, and " +
				"refuses to continue the case if a container has been changed. Not after a block that has to fail, nor " +
				"after `damage` after which a container cannot be opened again: `header`, and `truncated` of formats " +
				"other than UDRW and UDSB",
			keys:  []key[Step]{field("message", someText, func(s *Step) *string { return &s.Message }).must()},
			prose: func(s *Step, _ string) string { return "pause: " + strings.TrimSuffix(s.Message, ".") }},
		{do: "repeat", needs: needsNone, untimed: true, keys: []key[Step]{stepTimes.must(), innerSteps},
			about: "repeats the steps `times` over; each time is a cycle (1, 2, …); not nested",
			prose: func(s *Step, _ string) string { return fmt.Sprintf("%d times over:", s.Times) }},
		{do: "parallel", needs: needsNone, keys: []key[Step]{innerSteps},
			about: "at least two of `write`, `read`, `copy`, `stream`, started at the same time",
			prose: func(*Step, string) string { return "all at once, from one start:" }},
	}
}

// xattrValue is written for action = "set" alone, but then even where it is
// empty.
func xattrValue() key[Step] {
	k := field("value", anyText, func(s *Step) *string { return &s.Value })
	k.encode = func(s *Step) (string, bool) { return tomlString(s.Value), s.Action == "set" }
	return k
}

// finishSettle checks the limits of settle; until_stable without at_most stops
// after five minutes.
func finishSettle(r *reader, n *node, s *Step) {
	switch {
	case s.AtLeast == 0 && !s.UntilStable:
		r.problem(n.off, "settle", "settle does not wait").hintf("give at_least, until_stable or both")
	case n.get("at_most") != nil && !s.UntilStable:
		r.badKey(n.get("at_most"), "at_most has no meaning without until_stable")
	case s.AtMost > 0 && s.AtMost < s.AtLeast:
		r.bad(n.get("at_most"), "at_most %s is shorter than at_least %s", s.AtMost, s.AtLeast)
	}
	if s.UntilStable && s.AtMost == 0 {
		s.AtMost = max(units.Duration(5*60e9), s.AtLeast)
	}
}

// finishDelete checks that files are chosen in one way, and fills in the batch
// they are chosen from.
func finishDelete(r *reader, n *node, s *Step) {
	given := 0
	for _, set := range []bool{s.All, s.LastSets > 0, s.Largest > 0, s.Every, s.Share > 0} {
		if set {
			given++
		}
	}
	if given != 1 && !r.broken {
		r.problem(n.off, "delete", "delete needs exactly one way to choose files, this has %d", given).
			hintf("all = true, last_sets = 8, largest = 40, every_other = true or share = \"30%%\"")
	}
	if s.Share > 1 {
		r.bad(n.get("share"), "share: %s is more than all files", s.Share)
	}
	fromLast := s.LastSets > 0 || s.Largest > 0
	if s.Batch == "all" && fromLast {
		r.bad(n.get("batch"), "delete: last_sets and largest choose from the last batch")
	}
	if s.Batch == "" {
		s.Batch = map[bool]string{true: "last", false: "all"}[fromLast]
	}
}

// finishConvert refuses bands of formats without bands.
func finishConvert(r *reader, n *node, s *Step) {
	if s.BandSize > 0 && s.Format != "" && !formatOf(s.Format).Folder {
		r.badKey(n.get("band_size"), "only UDSB has bands, this converts to %s", s.Format)
	}
}

// finishXattr checks that the action has the name and value that it needs.
func finishXattr(r *reader, n *node, s *Step) {
	if s.Action != "list" && s.Action != "" && s.Attr == "" {
		r.problem(n.off, "attr", "xattr: %q needs \"attr\"", s.Action)
	}
	if s.Action == "set" && n.get("value") == nil {
		r.problem(n.off, "value", "xattr: \"set\" needs \"value\"")
	}
}

// placeProse names the place of a new container.
func placeProse(place string) string {
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

func remountProse(s *Step, image string) string {
	text := "detach and attach " + image + " again"
	if s.Times > 1 {
		text += fmt.Sprintf(", %d times over", s.Times)
	}
	if s.AtLeast > 0 {
		text += ", then leave it alone for " + s.AtLeast.String()
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

// batchProse names the files of a batch.
func batchProse(batch string) string {
	if batch == "all" {
		return "all files"
	}
	return "the files that were written last"
}

func readProse(s *Step, _ string) string {
	return "read " + batchProse(s.Batch) + ", each timed" +
		map[string]string{"shuffled": ", in random order", "as-listed": ", in the order of the list"}[s.Order]
}

func deleteProse(s *Step, _ string) string {
	from := "the files"
	if s.Batch != "" {
		from = batchProse(s.Batch)
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
		return "delete " + from
	}
	return "delete all files"
}

func convertProse(s *Step, image string) string {
	text := "convert " + image + " to " + firstWord(s.Format, "the case's format")
	if s.Encryption != "" && s.Encryption != "none" {
		text += " with " + s.Encryption
	}
	if s.BandSize > 0 {
		text += " with bands of " + s.BandSize.String()
	}
	return text + placeProse(s.Place) + " as “" + s.As + "”"
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

// makeContainer registers the container that convert, transfer and damage make.
func (f *stepChecker) makeContainer(s *Step, b *containerState) {
	made := &containerState{made: true, batches: b.batches, format: firstWord(s.makes(&f.c.Settings), b.format),
		folders: maps.Clone(b.folders), unsure: b.unsure, damage: b.damage}
	// Engines know bundles and most images by their headers, and images other
	// than raw ones by their trailer.
	if s.Kind == "header" || s.Kind == "truncated" && !opensTruncated(made.format) {
		made.damage = s.Kind
	}
	f.states[s.As] = made
}
