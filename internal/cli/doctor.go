package cli

import (
	"cmp"
	"context"
	_ "embed" // for doctor.tmpl
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/template"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/host"
	"dmgbench/internal/hostio"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
	"dmgbench/scripts"
)

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

// Widths in characters.
const (
	factWidth = 80
	nameWidth = 15
)

// runDoctor is the command "doctor". It prints all facts even where no engine
// works, which is its error.
func (a *app) runDoctor(ctx context.Context, _ []string) error {
	if dir := a.text("capture"); dir != "" {
		return a.captureAnswers(ctx, dir)
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
	d := &doctor{app: a, ctx: ctx, Program: tool(), Host: host.Gather(limited, places, a.isSet("identify")),
		Tuning: host.Tune()}
	cancel()
	page := template.Must(template.New("doctor").Funcs(template.FuncMap{
		"fact":  func(name, value string) string { return factText([]fact{{name: name, value: value}}) },
		"facts": factText, "count": count, "trim": strings.Trim,
		"words": func(parts ...string) string { return strings.Join(nonempty(parts...), " ") },
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
	line := func(name, value string) {
		prefix := fmt.Sprintf("%-*s", nameWidth, printable(name))
		text.WriteString(wrap(prefix, cmp.Or(value, "unknown"), nameWidth, factWidth) + "\n")
	}
	for _, f := range facts {
		line(f.name, f.value)
		if f.hint != "" {
			line("", "hint: "+f.hint)
		}
	}
	return text.String()
}

// Owner explains who owns the files that the program makes.
func (d *doctor) Owner() string {
	uid, _, ok := d.sudoCaller()
	switch {
	case ok:
		return fmt.Sprintf("root by sudo: files in folders of user %d, the caller, will belong to that user", uid)
	case os.Geteuid() == 0:
		return "root, not by sudo: files belong to root"
	}
	return fmt.Sprintf("%d, not root", os.Geteuid())
}

// Console reports whether a user is logged in at the screen of a Mac, because
// the services of a session work in the background.
func (d *doctor) Console() string {
	fi, err := os.Stat("/dev/console")
	if err != nil {
		return ""
	}
	if uid, ok := hostio.Owner(fi); ok && uid == 0 {
		return "no user is logged in: published figures are from Macs with a user logged in"
	}
	return "a user is logged in"
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
	"network":         "measure on a disk of this machine: --on DIR",
	"virtual":         "compare only with runs on the same virtual machine",
	"governor":        "cpupower frequency-set -g performance (as root) keeps the clock rate up",
	"huge-pages": "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root) allows huge pages " +
		"where they are asked for",
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
