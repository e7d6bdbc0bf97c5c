package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagRow declares one flag, in a line of the section FLAGS of a help text: its
// name, its type with the default, the rule for its values, and its help, in
// which the word in backquotes names the value:
//
//	engine text="auto" [auto|hdiutil]: `engine` that makes the images
//
// Its setting is <command>.<name>, its environment variable
// DMGBENCH_<COMMAND>_<NAME>. Values from all three sources are checked alike.
type flagRow struct {
	name, kind, initial, help string
	values                    []string // completions
	oneOf                     bool     // no other values
	positive                  bool     // a number greater than 0
}

// flagLine has the fields of a flagRow: in brackets are the values that a flag
// accepts, in parentheses suggestions. A line of another form is a programming
// error, and panics.
var flagLine = regexp.MustCompile(`^([a-z-]+) ([a-z0-9]+)(?:="(.*?)")?(?: \[(.*?)\]| \((.*?)\)| (>0))?: (.*)$`)

// add declares a flag in cobra, with the completions of its values.
func (row flagRow) add(cmd *cobra.Command) {
	f := cmd.Flags()
	switch row.kind {
	case "text":
		f.String(row.name, row.initial, row.help)
	case "bool":
		f.Bool(row.name, false, row.help)
	case "int":
		f.Int(row.name, 0, row.help)
	case "uint64":
		n, _ := strconv.ParseUint(row.initial, 10, 64) // in a file of this package
		f.Uint64(row.name, n, row.help)
	case "float64":
		f.Float64(row.name, 0, row.help)
	case "list": // may be given several times
		f.StringArray(row.name, nil, row.help)
	case "commas": // values separated by commas
		f.StringSlice(row.name, nil, row.help)
	}
	// Files do not complete these flags; flags without values complete to
	// files.
	if row.values != nil {
		complete := cobra.FixedCompletions(row.values, cobra.ShellCompDirectiveNoFileComp)
		if err := cmd.RegisterFlagCompletionFunc(row.name, complete); err != nil {
			panic(err) // the flag was declared above
		}
	}
}

// checkValue checks the value that a flag was given against its row. Empty
// values pass: they are the way to undo a setting of the settings file on the
// command line. What needs a plan or a unit is checked where the value is used.
// hint names the source of a value that was not typed: an error about --format
// puzzles users who never typed that flag.
func (row flagRow) checkValue(f *pflag.Flag, hint string) error {
	given := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		given = list.GetSlice()
	}
	for _, value := range given {
		number, _ := strconv.ParseFloat(value, 64) // the type of the flag is checked
		switch {
		case value == "":
		case row.oneOf && !slices.Contains(row.values, value):
			all := strings.Join(row.values, ", ")
			return usageError(hint, "reading --%s: %q is not one of %s", row.name, value, all)
		case row.positive && !(number > 0): // NaN is not
			return usageError(hint, "reading --%s: %s is not greater than 0", row.name, value)
		}
	}
	return nil
}

// flag is a flag of the executed command, nil for the name of another one.
func (a *app) flag(name string) *pflag.Flag { return a.command.Flags().Lookup(name) }

// text is the value of a flag of any type in the form that the user types; ""
// is also the value of text flags that were not given.
func (a *app) text(name string) string { return a.flag(name).Value.String() }

// isSet reports whether a flag without a value was given.
func (a *app) isSet(name string) bool { return a.text(name) == "true" }

// isGiven reports whether a flag got a value from the command line, the
// environment or the settings file, even one that equals its default.
func (a *app) isGiven(name string) bool { return a.flag(name).Changed }

// list is the value of a flag that takes several values, in the order of the
// command line.
func (a *app) list(name string) []string { return a.flag(name).Value.(pflag.SliceValue).GetSlice() }

// number is the value of a flag that takes an integer, 0 if it was not given
// and has no default.
func (a *app) number(name string) int {
	n, _ := strconv.Atoi(a.text(name)) // the type of the flag is checked
	return n
}

// positiveQuantity parses the value of a flag with a unit; 0 is the value of a
// flag that was not given.
func positiveQuantity[T ~int64 | ~float64](a *app, name string, parse func(string) (T, error)) (T, error) {
	text := a.text(name)
	if text == "" {
		return 0, nil
	}
	v, err := parse(text)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%q is not greater than 0", text)
	}
	if err != nil {
		return 0, usageError("", "reading --%s: %w", name, err)
	}
	return v, nil
}

// ownVariables are the environment variables that set no flag. doctor prints
// the values of those that are true here; of the others, which are secret, it
// prints only that they are set. docs/architecture.md describes all of them.
var ownVariables = map[string]bool{
	"DMGBENCH_CONFIG": true, "DMGBENCH_STATE": true, "DMGBENCH_RUNTIME_DIR": true,
	"DMGBENCH_HOST_NAME": true, "DMGBENCH_PASSPHRASE_FILE": true, "DMGBENCH_PASSPHRASE": false,
	"NO_COLOR": true, "CLICOLOR": true, "CLICOLOR_FORCE": true, "FORCE_COLOR": true,
}

// configure prepares the execution of cmd: flags that were not typed get their
// values from the environment, else from the settings file, and all values are
// checked. From here on, errors are those of the command and no longer of the
// command line, and --format json applies to them.
func (a *app) configure(cmd *cobra.Command) error {
	if err := a.readSettings(); err != nil {
		return err
	}
	a.command = cmd
	path := commandPath(cmd)
	var err error // the first; it is reported as --format asks for it, wherever that comes from
	for _, row := range a.flags[path] {
		f, key := a.flag(row.name), settingKey(path, row.name)
		value, source := a.settings.Get(key), "the settings file, "+key
		if v := a.env[variableName(key)]; v != "" { // an empty variable counts as not set
			value, source = v, variableName(key)
		}
		hint := ""
		if !f.Changed && value != nil {
			if wrong := setFlag(f, value); wrong != nil {
				err = cmp.Or(err, usageError("", "reading %s: %w", source, wrong))
			}
			f.Changed = true // pflag itself sets it only for typed flags
			hint = "--" + row.name + " comes from " + source
		}
		if f.Changed {
			err = cmp.Or(err, row.checkValue(f, hint))
		}
	}
	a.parsed, a.json = true, (path == "run" || path == "resume") && a.text("format") == "json"
	return err
}

// setFlag sets a flag to a value of the environment or of the settings file. A
// text is parsed as on the command line, so that flags with commas accept
// commas here, too.
func setFlag(f *pflag.Flag, value any) error {
	list, isList := value.([]any)
	to, takesList := f.Value.(pflag.SliceValue)
	switch {
	case !isList:
		if err := f.Value.Set(fmt.Sprint(value)); err != nil {
			return valueError(f, fmt.Sprint(value), err)
		}
		return nil
	case !takesList:
		return errors.New("want one value, this is a list")
	}
	var values []string
	for _, v := range list {
		values = append(values, fmt.Sprint(v))
	}
	return to.Replace(values)
}

// valueError replaces the error of strconv by one that names the type of value that
// a flag takes; it returns err for other types.
func valueError(f *pflag.Flag, value string, err error) error {
	types := map[string]string{"int": "a whole number", "uint64": "a whole number", "float64": "a number",
		"bool": "true or false"}
	if name := types[f.Value.Type()]; name != "" {
		return fmt.Errorf("%q is not %s", value, name)
	}
	return err
}

// commandPath is the path of a command without the program's name: "history
// prune".
func commandPath(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "dmgbench ")
}

// settingKey is the setting of a flag: "history.prune.keep".
func settingKey(path, flag string) string { return strings.ReplaceAll(path, " ", ".") + "." + flag }

// variableName is the environment variable of a setting:
// "DMGBENCH_HISTORY_PRUNE_KEEP".
func variableName(key string) string {
	return "DMGBENCH_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// settingKeys are all settings, in the order of the commands. The keys of the
// settings file are compared with them, in lower case, as viper reads them.
func (a *app) settingKeys() (keys []string) {
	for _, command := range commandRows {
		for _, row := range a.flags[command.path] {
			keys = append(keys, settingKey(command.path, row.name))
		}
	}
	return keys
}

// readSettings reads the settings file if there is one. An unknown key is an
// error, because a misspelt setting that is ignored changes a measurement
// without notice.
func (a *app) readSettings() error {
	path := a.settingsPath()
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return usageError("", "reading settings: %w", err)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the byte order mark of some editors
	a.settings.SetConfigType("toml")
	if err := a.settings.ReadConfig(bytes.NewReader(text)); err != nil {
		return usageError("", "reading settings %q: %w", path, err)
	}
	known := a.settingKeys()
	for _, key := range a.settings.AllKeys() {
		if !slices.Contains(known, key) {
			return usageError("a table is a command, its keys are flags: [run] and engine = \"inprocess\"",
				"reading settings %q: no setting is called %q", path, key)
		}
	}
	return nil
}

// settingsPath is the path of the settings file, "" without one. The user
// requires the file by naming it in DMGBENCH_CONFIG. The folder follows the XDG
// Base Directory Specification, on macOS the folder for application support.
func (a *app) settingsPath() string {
	if p := a.env["DMGBENCH_CONFIG"]; p != "" {
		return p
	}
	dir := a.env["XDG_CONFIG_HOME"]
	if home := a.env["HOME"]; dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
		if runtime.GOOS == "darwin" {
			dir = filepath.Join(home, "Library", "Application Support")
		}
	}
	path := filepath.Join(dir, "dmgbench", "config.toml")
	if _, err := os.Stat(path); dir == "" || errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// parseSince parses a day (from midnight UTC), a time of RFC 3339, or an age
// before now such as 36h, 30d or 8w.
func parseSince(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	for suffix, hours := range map[string]int{"d": 24, "w": 7 * 24} {
		digits, ok := strings.CutSuffix(text, suffix)
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 && n < 100_000 { // less than a time.Duration holds
			return now.Add(-time.Duration(n*hours) * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time nor an age", text)
}
