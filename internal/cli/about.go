package cli

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	_ "embed" // for doctor.tmpl
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/bench/selftest"
	"dmgbench/internal/image"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/manpage"
	"dmgbench/internal/system/units"
	"dmgbench/internal/system/version"
	"dmgbench/plans"
	"dmgbench/scripts"
)

// writeManPages is the command "man".
func (a *app) writeManPages(_ context.Context, args []string) error {
	dir := args[0]
	a.chownAtExit(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making folder %q: %w", dir, err)
	}
	return manpage.Write(dir, a.command.Root())
}

// printVersion is the command "version".
func (a *app) printVersion(context.Context, []string) error {
	return a.print("%s", version.Describe("dmgbench"))
}

// tool identifies this program in results.
func tool() result.Tool {
	return result.Tool{Name: "dmgbench", Version: version.Version(), Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
}

// schemas are the documents with a schema.
var schemas = map[string]func() []byte{"plan": plan.JSONSchema, "result": result.JSONSchema,
	"comparison": analysis.ComparisonSchema}

// printSchema is the command "schema".
func (a *app) printSchema(_ context.Context, args []string) error {
	schema := schemas[args[0]]
	if schema == nil {
		return usageError("", "printing schema %q: it is not one of %s", args[0],
			strings.Join(slices.Sorted(maps.Keys(schemas)), ", "))
	}
	_, err := a.stdout.Write(schema())
	return err
}

// runSelftest is the command "selftest". A promise that is not kept is an
// error.
func (a *app) runSelftest(ctx context.Context, _ []string) error {
	seed, _ := a.command.Flags().GetUint64("seed")
	r, err := selftest.Run(ctx, selftest.Options{Seed: seed, Only: a.list("study")})
	if err != nil {
		return err
	}
	if a.text("format") == "json" {
		err = a.writeJSON(r)
	} else {
		_, err = a.stdout.Write([]byte(r.Text()))
	}
	if err == nil && !r.Kept {
		err = errors.New("testing the numbers: not every promise is kept")
	}
	return err
}

//go:embed doctor.tmpl
var doctorTemplate string

// doctor is what the template prints. It calls the methods in the order of the
// output; a fact is printed as soon as it is known, because engines take time.
type doctor struct {
	*app
	ctx     context.Context // of the command
	Program result.Tool
	Host    result.Host
	Tuning  host.Tuning
	chosen  engine.Engine // the first one that works, nil without one
	err     error         // why the command fails after all is printed
}

// fact is a line that doctor prints, with a hint what to do about it, which may
// be empty.
type fact struct{ name, value, hint string }

// runDoctor is the command "doctor". It prints all facts even where no engine
// works, which is its error.
func (a *app) runDoctor(ctx context.Context, _ []string) error {
	switch dir := a.text("capture"); {
	case a.isSet("apple"):
		return explainInterrupt(a.examineTools(ctx, dir), "interrupted: the images were detached and removed")
	case dir != "":
		return errors.Join(a.captureAnswers(ctx, dir), a.packCapture(dir))
	}
	given, err := a.locations()
	if err != nil {
		return err
	}
	if len(given.here) > 0 {
		return usageError("give a folder", "reading --on %s=%s: it is for run", given.here[0], plan.Here)
	}
	places := []host.Place{{Name: "this folder", Path: existing(".")}}
	for i, p := range given.places {
		places = append(places, host.Place{Name: cmp.Or(p.Name, a.list("on")[i]), Path: p.Path})
	}
	limited, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	d := &doctor{app: a, ctx: ctx, Program: tool(), Host: host.Gather(limited, places, a.isSet("identify")),
		Tuning: host.Tune()}
	page := template.Must(template.New("doctor").Funcs(template.FuncMap{
		"fact":  func(name, value string) string { return factText([]fact{{name: name, value: value}}) },
		"facts": factText, "count": units.Count, "trim": strings.Trim,
		"words": func(parts ...string) string { return strings.Join(nonempty(parts...), " ") },
		"join":  func(separator string, parts ...string) string { return strings.Join(nonempty(parts...), separator) },
		"human": func(bytes int64) string { // "" for an unknown size
			if bytes <= 0 {
				return ""
			}
			return units.Bytes(bytes).Human()
		},
	}).Parse(doctorTemplate))
	return cmp.Or(page.Execute(a.stdout, d), d.err)
}

// factText is the text of facts. Values are wrapped after the column of the
// names; an empty value is unknown.
func factText(facts []fact) string {
	var text strings.Builder
	const nameWidth = 15 // in characters, of the 80 of a line
	for _, f := range facts {
		name := printable(f.name)
		for _, value := range nonempty(cmp.Or(f.value, "unknown"), report.TextIf(f.hint != "", "hint: "+f.hint)) {
			text.WriteString(wrap(fmt.Sprintf("%-*s", nameWidth, name), value, nameWidth, 80) + "\n")
			name = ""
		}
	}
	return text.String()
}

// FileLimit is the limit of open files, where it is so low that sparse bundles
// have to open their bands again and again.
func (d *doctor) FileLimit() string {
	const usual = 1024 // the limit on Linux
	if n := hostio.MaxFiles(); n < usual {
		return fmt.Sprintf("%d open files (raise it with ulimit -n): the bands of a sparse bundle are opened again and again",
			n)
	}
	return ""
}

// SudoCaller is the user who called sudo, "" where this is not root by sudo.
func (d *doctor) SudoCaller() string {
	uid, _, ok := d.sudoCaller()
	return report.TextIf(ok, strconv.Itoa(uid))
}

// UID is the user of this process.
func (d *doctor) UID() int { return os.Geteuid() }

// ConsoleUID is the owner of the screen of a Mac, -1 if unknown. It is root while
// no user is logged in: the services of a session work in the background then.
func (d *doctor) ConsoleUID() int {
	if fi, err := os.Stat("/dev/console"); err == nil {
		return hostio.StatOf(fi).UID
	}
	return -1
}

// warningHints are what to do about the warnings of package host, by kind.
// Kinds without an entry have no remedy.
var warningHints = map[string]string{
	"battery":         "connect the power supply",
	"low-power":       "switch low power mode off in the system's settings",
	"thermal":         "let the machine cool down",
	"cpu-quota":       "raise the limit of the container, or run outside it",
	"busy":            "wait until the other work is done, or stop it",
	"translated":      "use the program that is made for this processor",
	"memory-pressure": "end other programs",
	"nearly-full":     "make room on the disk, or measure on another",
	"image-host":      "measure on a real disk: --on DIR",
	"compressed":      "measure on a file system that does not compress: --on DIR",
	"network":         "measure on a disk of this machine: --on DIR",
	"virtual":         "compare only with runs on the same virtual machine",
	"governor":        "cpupower frequency-set -g performance (as root) keeps the clock rate up",
	"huge-pages": "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root) allows huge pages " +
		"where they are asked for",
}

// Settings are the settings of all commands and where each comes from: the
// environment wins over the settings file. Variables with the prefix of this
// program that have no effect are listed, too, as they are misspelt in most
// cases.
func (d *doctor) Settings() []fact {
	facts := []fact{{"settings file", cmp.Or(d.redacted(d.settingsPath()), "none"), ""}}
	add := func(key, value, source string) {
		facts = append(facts, fact{"setting", fmt.Sprintf("%s = %s (%s)", key, d.redacted(value), source), ""})
	}
	variables := map[string]bool{}
	for _, key := range d.settingKeys() {
		variable := variableName(key)
		variables[variable] = true
		if value := d.env[variable]; value != "" {
			add(key, value, "environment, "+variable)
		} else if d.settings.InConfig(key) {
			add(key, fmt.Sprint(d.settings.Get(key)), "settings file")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.env)) {
		shown, known := ownVariables[name]
		switch {
		case d.env[name] == "":
		case known && !shown:
			add(name, "set, not shown", "environment")
		case known:
			add(name, d.env[name], "environment")
		case strings.HasPrefix(name, "DMGBENCH_") && !variables[name]:
			facts = append(facts, fact{"no setting", "unknown environment variable " + name + " (ignored)", ""})
		}
	}
	return facts
}

// redacted hides paths, which may contain names of people and machines, unless
// doctor got --identify: its output is made to be sent to others.
func (d *doctor) redacted(value string) string {
	if !d.isSet("identify") && strings.ContainsAny(value, `/\`) {
		return "a path, shown with --identify"
	}
	return value
}

// Spoilers are what would disturb a measurement now. The result of a run has
// the same warnings.
func (d *doctor) Spoilers() (facts []fact) {
	for _, w := range append(host.Warnings(d.Host), d.Tuning.Warnings()...) {
		facts = append(facts, fact{"spoiler", w.Text, warningHints[w.Kind]})
	}
	if len(facts) == 0 {
		return []fact{{"spoilers", "none found", ""}}
	}
	return facts
}

// Leftovers are the images that earlier runs left.
func (d *doctor) Leftovers() (facts []fact) {
	state, err := d.stateDir()
	if err != nil {
		return nil // the error of the engines names it
	}
	for _, l := range d.leftovers(d.ctx, state) {
		facts = append(facts, fact{"left over", l.text, l.hint})
	}
	return facts
}

// captureAnswers runs scripts/capture.sh, which records the answers of the disk
// image tools in a folder. On Linux the script uses this program as hdiutil. An
// interrupt is passed on, and the script gets a minute to clean up.
func (a *app) captureAnswers(ctx context.Context, dir string) error {
	o, err := a.hdiutilOptions()
	if err != nil {
		return fmt.Errorf("capturing: %w", err)
	}
	a.chownAtExit(dir)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", scripts.Capture, "capture.sh", dir)
	cmd.Stdout, cmd.Stderr = a.stdout, a.stderr
	cmd.Env = os.Environ()
	if program := o.Hdiutil[0]; program != hdiutil.AppleHdiutil {
		cmd.Env = append(cmd.Env, "DMGBENCH="+program)
	}
	// The script detaches its images when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("capturing into %q: %w", dir, err)
	}
	return nil
}

// packCapture makes one file of a capture, which can be sent.
func (a *app) packCapture(dir string) error {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		return fmt.Errorf("packing the capture %q: %w", dir, err)
	}
	path := runner.Absolute(dir) + ".zip"
	a.chownAtExit(path)
	folder, err := hostio.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.WriteFileAtomic(filepath.Base(path), packed.Bytes(), 0o644); err != nil {
		return err
	}
	return a.print("all answers in one file: %s", path)
}

// examineTools prints a table of what this program assumes of the disk image
// tools, and what they do. With a folder it captures their answers, too, and
// adds the table to them.
func (a *app) examineTools(ctx context.Context, capture string) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	e, err := a.newHdiutil(ctx, engineConfig{state: state})
	if err != nil {
		return err
	}
	if capture != "" {
		if err := a.captureAnswers(ctx, capture); err != nil {
			return err
		}
	}
	var table strings.Builder
	out := io.MultiWriter(a.stdout, &table)
	_, build := host.OSVersion()
	fmt.Fprintln(out, strings.Join(nonempty(e.Info().Title, e.Info().Version, build, "dmgbench "+version.Version()), ", "))
	counts, needed := map[string]int{}, 0
	err = runner.WithProbeFolder(state, a.clock.Wall(), func(dir *hostio.Dir) error {
		free, _, _, err := dir.FreeSpace()
		if err != nil || free < hdiutil.ExamineSpace {
			return errors.Join(err, fmt.Errorf("examining the tools: the state folder has %s free, it takes %s",
				units.Bytes(free).Human(), units.Bytes(hdiutil.ExamineSpace).Human()))
		}
		return e.(*hdiutil.Engine).Examine(ctx, dir, func(o hdiutil.Observation) {
			fmt.Fprintln(out, observationText(o))
			counts[o.Verdict]++
			if o.Needed && o.Verdict == hdiutil.Differs {
				needed++
			}
		})
	})
	fmt.Fprintf(out, "%d as expected, %d differ, %d not possible here\n", counts[hdiutil.AsExpected],
		counts[hdiutil.Differs], counts[hdiutil.NotPossible])
	if capture != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(capture, "table.txt"), []byte(table.String()), 0o644),
			a.packCapture(capture))
	}
	if err != nil || needed == 0 {
		return err
	}
	return withHint(fmt.Errorf("examining the tools: %s on which figures depend differ", units.Count(needed, "answer")),
		"send them in an issue: dmgbench doctor --apple --capture FOLDER makes a file of all")
}

// observationText is a line of the table of examineTools.
func observationText(o hdiutil.Observation) string {
	value := o.Name + ": " + o.Seen
	if o.Verdict == hdiutil.Differs {
		value += "; expected: " + o.Expected + report.TextIf(!o.Needed, "; no figure depends on it")
	}
	return wrap(fmt.Sprintf("%-*s", len(hdiutil.NotPossible)+2, o.Verdict), value, len(hdiutil.NotPossible)+2, 80)
}

// Engines probes every engine. The first one that works is the one that
// --engine auto uses.
func (d *doctor) Engines() (facts []fact) {
	var errs []error
	state, err := d.stateDir()
	if err != nil {
		d.err = err
		return nil
	}
	for _, choice := range engineChoices {
		e, title, err := d.makeEngine(d.ctx, choice, engineConfig{state: state, auto: true})
		switch {
		case err != nil:
			errs = append(errs, err)
			facts = append(facts, fact{"engine", title + " is not used: " + err.Error(), hint(err)})
		case d.chosen == nil:
			d.chosen = e
			facts = append(facts, fact{"engine", title + " works, and --engine auto uses it: it " + probed, ""})
		default:
			facts = append(facts, fact{"engine", title + " works", ""})
		}
	}
	if d.chosen == nil {
		d.err = noEngineError(errs)
	}
	return facts
}

// Attaching is what hdiutil for Linux can use: loop devices, FUSE and file
// systems.
func (d *doctor) Attaching() []fact {
	if runtime.GOOS != "linux" {
		return nil
	}
	loops, fuse := "this user cannot use them: they need root and /dev/loop-control", "/dev/fuse can be opened"
	if attach.Loops() {
		loops = "this user can use them"
	}
	fuseHint := ""
	if err := attach.CheckFUSE(); err != nil {
		fuse, fuseHint = strings.TrimPrefix(err.Error(), "FUSE is "), attach.FUSEHint
	}
	// File systems that can be made and mounted here, and which program, package
	// or driver is missing for the others.
	var yes, no, packages []string
	for _, f := range attach.Filesystems() {
		mounts := f.MountableByKernel || f.Kernel == "exfat" // exFAT has a FUSE server of ours
		switch {
		case f.Present && mounts:
			yes = append(yes, f.Name)
		case mounts:
			no = append(no, fmt.Sprintf("%s (%s is not installed)", f.Name, f.Tool))
			packages = report.AppendNew(packages, f.Package)
		default:
			no = append(no, fmt.Sprintf("%s (the kernel has no driver %s)", f.Name, f.Kernel))
		}
	}
	var tools, missing []string
	for _, t := range imageTools {
		if isInstalled(t[0]) {
			tools = append(tools, t[0])
		} else {
			missing, packages = append(missing, t[0]), report.AppendNew(packages, t[1])
		}
	}
	list := strings.Join(packages, " ")
	hint := report.TextIf(list != "", "apt install "+list+" (Debian, Ubuntu)")
	return []fact{{"loop devices", loops, ""}, {"FUSE", fuse, fuseHint}, {"file systems", withMissing(yes, no), ""},
		{"image tools", withMissing(tools, missing), hint}}
}

// imageTools are the programs that open or check images which --keep left, with
// their Debian packages. Measuring needs none of them.
var imageTools = [][2]string{{"7zz", "7zip"}, {"mount", "mount"}, {"losetup", "mount"}, {"fsck.exfat", "exfatprogs"},
	{"mount.exfat-fuse", "exfat-fuse"}, {"fusermount3", "fuse3"}}

// isInstalled looks for a program, also in the folders of root, which the PATH
// of others lacks.
func isInstalled(name string) bool {
	return slices.ContainsFunc([]string{"", "/usr/local/sbin/", "/usr/sbin/", "/sbin/"}, func(dir string) bool {
		_, err := exec.LookPath(dir + name)
		return err == nil
	})
}

// withMissing is "a, b. Not: c".
func withMissing(yes, no []string) string {
	return strings.TrimSuffix(strings.Join(yes, ", ")+". Not: "+strings.Join(no, ", "), ". Not: ")
}

// Measures is what the first engine that works can measure here, and the figures
// of the system that a run can record in addition to its own.
func (d *doctor) Measures() []fact {
	if d.chosen == nil {
		return nil
	}
	disk := "can read the number of bytes that the disk transferred, which shows cached reads"
	if _, _, err := host.DeviceBytes(existing(".")); err != nil {
		disk = "cannot read the number of bytes that the disk transferred: " + err.Error()
	}
	apfs := "none: only macOS logs trims of APFS"
	if log, ok := d.chosen.(interface{ CheckLog(context.Context) error }); ok {
		apfs = "can read the trims of APFS at each attach"
		limited, cancel := context.WithTimeout(d.ctx, 20*time.Second)
		defer cancel()
		if err := log.CheckLog(limited); err != nil {
			apfs = "cannot read the trims of APFS: " + err.Error()
		}
	}
	facts := []fact{{"measures", "native folders; " + supportedImages(d.chosen), ""},
		{"disk counters", disk, ""}, {"APFS log", apfs, ""}}
	return append(facts, d.plans()...)
}

// plans groups the built-in plans by how many of their cases the engine
// supports. Native baselines, which every engine measures, are not counted.
func (d *doctor) plans() []fact {
	var full, part, none []string
	for _, name := range plans.Names() {
		p, _, err := loadPlan(name)
		if err != nil {
			d.err = err
			return nil
		}
		cases := slices.DeleteFunc(p.Cases(), func(c plan.Case) bool { return c.Baseline })
		switch unsupported := len(runner.UnsupportedCases(p, d.chosen)); unsupported {
		case 0:
			full = append(full, name)
		case len(cases):
			none = append(none, name)
		default:
			part = append(part, fmt.Sprintf("%s (%d of %d)", name, len(cases)-unsupported, len(cases)))
		}
	}
	list := func(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
	return []fact{{"plans in full", list(full), ""}, {"plans in part", list(part), ""}, {"plans not", list(none), ""}}
}

// supportedImages lists the formats, ciphers and file systems that an engine
// supports, and those that it does not. Ciphers and file systems are tried with
// the first supported format.
func supportedImages(e engine.Engine) string {
	var yes, no []string
	add := func(name string, spec engine.Spec) {
		if e.Supports(spec) == nil {
			yes = append(yes, name)
		} else {
			no = append(no, name)
		}
	}
	for _, f := range image.FormatNames(image.Format.Writable) {
		add(f, engine.Spec{Format: f})
	}
	format := strings.Join(yes[:min(len(yes), 1)], "")
	for _, c := range image.Encryptions[1:] { // the first is "none"
		add(c, engine.Spec{Format: format, Encryption: c})
	}
	for _, fs := range image.FilesystemNames() {
		add(fs, engine.Spec{Format: format, Filesystems: []string{fs}})
	}
	return withMissing(yes, no)
}
