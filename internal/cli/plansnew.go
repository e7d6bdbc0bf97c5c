package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"dmgbench/internal/plan"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newPlanOptions are the flags that make a plan, as they were typed: the plan's own check judges them.
type newPlanOptions struct {
	File       string
	Title      string
	Format     string
	Encryption string
	Filesystem string
	Size       string
	Files      string
	Sets       string
	Rounds     string
}

// AddFlags adds them with their defaults.
func (o *newPlanOptions) AddFlags(f *pflag.FlagSet) {
	for _, flag := range []struct {
		name, help, fallback string
		to                   *string
	}{
		{"title", "`title` of the plan, one line", "My plan", &o.Title},
		{"format", "`formats` of the images: UDRW, UDSB, UDSP, ASIF", "UDRW,UDSB", &o.Format},
		{"encryption", "`encryption`: none, AES-128, AES-256", "none", &o.Encryption},
		{"filesystem", "`file systems`, the best first: APFS, HFS+, exFAT, FAT32, ext4, XFS, btrfs", "APFS,ext4,exFAT", &o.Filesystem},
		{"size", "nominal `size` of the images, such as 500 MB", "500 MB", &o.Size},
		{"files", "`sizes` of the files, or gold for the sixteen of the gold standard", "1 MB,2 MB,4 MB,8 MB,16 MB", &o.Files},
		{"sets", "`number` of files of each size", "3", &o.Sets},
		{"rounds", "number of `rounds`: three or more give intervals and verdicts", "3", &o.Rounds},
	} {
		f.StringVar(flag.to, flag.name, flag.fallback, flag.help)
	}
}

const goldSizes = "2 MB,4 MB,6 MB,8 MB,10 MB,20 MB,40 MB,60 MB,80 MB,100 MB,200 MB,400 MB,600 MB,800 MB,1000 MB,2000 MB"

func (a *app) newPlansNewCommand() *cobra.Command {
	var o newPlanOptions
	cmd := &cobra.Command{
		Use: "new FILE", Args: between(1, 1, "FILE"),
		Short: "make a plan by flags",
		Long: `Make a plan with comments in FILE and print its name: images of the formats and
encryptions given, and a native folder, are filled with files that are read back
after a remount. Lists have commas. The comments say what each part does, for
editing. A wrong value is refused with the values there are, and a file that is
there is never replaced.

EXIT STATUS
  0  made
  1  error, such as a file that is there
  2  bad usage, or a plan that could not be run`,
		Example: "  dmgbench plans new mine.toml\n  dmgbench plans new mine.toml --format UDSB,UDRW --size '100 GB' --files gold",
		RunE: func(_ *cobra.Command, args []string) error {
			o.File = args[0]
			return a.makePlan(o)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

func (a *app) makePlan(o newPlanOptions) error {
	text := o.toml()
	p, problems := plan.Parse(filepath.Base(o.File), []byte(text))
	if errs := problems.Errors(); len(errs) > 0 {
		return wrongAnswers(text, errs)
	}
	if err := canRun(p); err != nil {
		return err
	}
	for _, w := range problems.Warnings() {
		a.warn(w.String())
	}
	a.leaves(o.File)
	if err := writeNew(o.File, []byte(text)); err != nil {
		err = fmt.Errorf("making plan %q: %w", o.File, err)
		if errors.Is(err, fs.ErrExist) {
			return &hintedError{err, "give another name: a file that is there is never replaced"}
		}
		return err
	}
	_, err := fmt.Fprintln(a.out, o.File)
	return err
}

// toml is the plan; whatever was typed stands in it as text, for the check to judge.
func (o newPlanOptions) toml() string {
	files := o.Files
	if strings.EqualFold(files, "gold") {
		files = goldSizes
	}
	return schemaLine + fmt.Sprintf(`# What each key means: docs/plan-language.md. What a run would do and write: dmgbench run FILE --dry-run.
schema = 1
title  = %s

# Every image has this nominal size. The first file system that the engine can make is used;
# another than the first is listed as a departure.
[image]
size                  = %s
filesystem_preference = %s

# One case for each combination.
[matrix]
format     = %s
encryption = %s

# So many files of each size, in an order that is shuffled within each set. The data cannot be compressed.
[files.work]
sizes = %s
sets  = %s
order = "shuffled"

# A new image is attached once, as Disk Utility does, and detached before anything is measured.
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "detach" },
  { do = "measure", phase = "created" }, # size on disk
  { do = "attach" },
  { do = "write", phase = "new", files = "work" },
  { do = "remount" },                    # so that nothing is read from memory
  { do = "read", phase = "new" },
  { do = "verify", phase = "new" },      # every byte, outside of what is timed
  { do = "detach" },
  { do = "measure", phase = "full" },
]

# The round is the unit of replication: intervals and verdicts need three. The baseline does the same
# work in a native folder; the canary, a short write there before each case, shows drift.
[run]
rounds   = %s
baseline = true
canary   = true

# A table as it would be printed: a cell is the quantity of its column, of the cases of its row.
[[table]]
name    = "overview"
title   = "Rates and sizes"
columns = [
  { title = "write", write = { phase = "new" } },
  { title = "read", read = { phase = "new" } },
  { title = "new", group = "size on disk", allocated = { phase = "created" } },
  { title = "full", group = "size on disk", allocated = { phase = "full" } },
]
rows = [
%s]

# A sentence that the figures can bear out or not. Change it, or add others.
[[claim]]
says    = "Every byte that comes back after a remount is the one that was written"
by      = "us"
outcome = { do = "verify", where = { phase = "new" }, is = "ok" }
`, tomlText(o.Title), tomlText(o.Size), tomlList(o.Filesystem), tomlList(o.Format), tomlList(o.Encryption), tomlList(files), tomlNumber(o.Sets), tomlNumber(o.Rounds), o.rows())
}

// rows are the lines of the table: one for each combination, and the folder beside them.
func (o newPlanOptions) rows() string {
	var b strings.Builder
	for _, format := range typedList(o.Format) {
		for _, encryption := range typedList(o.Encryption) {
			fmt.Fprintf(&b, "  { where = { format = %s, encryption = %s } },\n", tomlText(format), tomlText(encryption))
		}
	}
	return b.String() + "  { title = \"native folder\", where = { baseline = true } },\n"
}

// tomlText quotes a value. Control characters, which Go would write as no TOML does, are left out.
func tomlText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))) + `"`
}

func tomlList(s string) string {
	list := typedList(s)
	for i, item := range list {
		list[i] = tomlText(item)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// typedList are the items of a list as it was typed.
func typedList(s string) []string {
	var list []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// tomlNumber lets the plan's check say what is wrong with what is no number.
func tomlNumber(s string) string {
	if n, err := strconv.Atoi(s); err == nil {
		return strconv.Itoa(n)
	}
	return tomlText(s)
}
