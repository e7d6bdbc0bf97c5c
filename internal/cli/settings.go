package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ownVariables are the environment variables that set no flag. doctor prints
// the values of those that are true here; of the others, which are secret, it
// prints only that they are set. docs/architecture.md describes all of them.
var ownVariables = map[string]bool{
	"DMGBENCH_CONFIG": true, "DMGBENCH_STATE": true, "DMGBENCH_RUNTIME_DIR": true,
	"DMGBENCH_PASSPHRASE_FILE": true, "DMGBENCH_PASSPHRASE": false, "NO_COLOR": true,
}

// configure prepares the execution of cmd: flags that were not typed get their
// values from the environment, else from the settings file, and all values are
// checked. From here on, errors are those of the command and no longer of the
// command line, and --format json applies to them.
func (a *app) configure(cmd *cobra.Command) error {
	if err := a.readSettings(); err != nil {
		return err
	}
	a.command, a.valueSources = cmd, map[string]string{}
	// Values are set first and checked below: an error of a value is then
	// reported as --format json asks for it, wherever that comes from.
	rows := a.flags[commandPath(cmd)]
	for _, row := range rows {
		f, key := a.flag(row.name), settingKey(commandPath(cmd), row.name)
		value, source := a.settings.Get(key), "the settings file, "+key
		if v := a.env[variableName(key)]; v != "" { // an empty variable counts as not set
			value, source = v, variableName(key)
		}
		if f.Changed || value == nil {
			continue
		}
		if err := setFlag(f, value); err != nil {
			return usageError("", "reading %s: %w", source, err)
		}
		f.Changed = true // pflag itself sets it only for typed flags
		a.valueSources[f.Name] = source
	}
	if name := cmd.Name(); name == "run" || name == "resume" {
		a.json = a.text("format") == "json"
	}
	a.parsed = true
	for _, row := range rows {
		if f := a.flag(row.name); f.Changed {
			if err := row.checkValue(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// setFlag sets a flag to a value of the settings file or of the environment. A
// text is parsed as on the command line, so that flags with commas accept
// commas here, too. Lists of settings are only for flags that take several
// values: viper would make an empty text of others.
func setFlag(f *pflag.Flag, value any) error {
	list, isList := value.([]any)
	if !isList {
		if err := f.Value.Set(fmt.Sprint(value)); err != nil {
			return wrongValue(f, fmt.Sprint(value), err)
		}
		return nil
	}
	to, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return errors.New("want one value, this is a list")
	}
	var values []string
	for _, v := range list {
		switch v.(type) {
		case []any, map[string]any:
			return errors.New("want a list of values, this is one of lists or tables")
		}
		values = append(values, fmt.Sprint(v))
	}
	return to.Replace(values)
}

// commandPath is the path of a command without the program's name: "history
// prune".
func commandPath(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
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
	a.settings.SetConfigFile(path)
	a.settings.SetConfigType("toml")
	if err := a.settings.ReadInConfig(); err != nil {
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

// flagName finds the flags that an error message names.
var flagName = regexp.MustCompile(`--([a-z][a-z-]*)`)

// valueSource explains where the flags that a text names got their values, ""
// if they were typed. It is for hints: an error about --format puzzles users
// who never typed that flag.
func (a *app) valueSource(text string) string {
	var out []string
	for _, m := range flagName.FindAllStringSubmatch(text, -1) { // one message may name several flags
		if source, ok := a.valueSources[m[1]]; ok {
			out = append(out, m[0]+" comes from "+source)
		}
	}
	return joinUnique(out)
}

// Settings are the settings in effect and where each comes from: what was typed
// wins over the environment, which wins over the settings file. Variables with
// the prefix of this program that have no effect are listed, too, as they are
// misspelt in most cases.
func (d *doctor) Settings() []fact {
	file := "none"
	if path := d.settingsPath(); path != "" {
		file = d.redacted(path)
	}
	facts := []fact{{"settings file", file, ""}}
	add := func(format string, args ...any) {
		facts = append(facts, fact{"setting", fmt.Sprintf(format, args...), ""})
	}
	unknown := maps.Clone(d.env)
	for _, key := range d.settingKeys() {
		variable := variableName(key)
		delete(unknown, variable)
		name, own := strings.CutPrefix(key, "doctor.") // only flags of doctor itself can have been typed
		switch value := d.env[variable]; {
		case own && d.isGiven(name) && d.valueSources[name] == "":
			add("%s = %s (flag --%s)", key, d.redacted(d.text(name)), name)
		case value != "":
			add("%s = %s (environment, %s)", key, d.redacted(value), variable)
		case d.settings.InConfig(key):
			add("%s = %s (settings file)", key, d.redacted(fmt.Sprint(d.settings.Get(key))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ownVariables)) {
		delete(unknown, name)
		if value := d.env[name]; value != "" && ownVariables[name] {
			add("%s (environment, %s)", d.redacted(value), name)
		} else if value != "" {
			add("set, not shown (environment, %s)", name)
		}
	}
	if len(facts) == 1 {
		facts = append(facts, fact{"settings", "every flag has its default", ""})
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		if strings.HasPrefix(name, "DMGBENCH_") {
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
