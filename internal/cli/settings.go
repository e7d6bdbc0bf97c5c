package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configure fills the flags that were not given from the environment, and what
// that does not say from the settings file.
func (a *app) configure(cmd *cobra.Command) error {
	if err := a.readSettings(cmd.Root()); err != nil {
		return err
	}
	var first error
	a.untyped = map[string]string{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		key := settingKey(cmd, f.Name)
		variable := variableOf(key)
		from := "the settings file, " + key
		if v := a.env[variable]; v != "" { // an empty one says nothing, as everywhere
			a.settings.Set(key, v)
			from = variable
		}
		if f.Changed || first != nil || f.Name == "help" || !a.settings.IsSet(key) {
			return
		}
		if err := a.fill(f, key); err != nil {
			first = &usageError{err: fmt.Errorf("reading %s: %w", from, err)}
			return
		}
		a.untyped[f.Name] = from
	})
	return first
}

func (a *app) fill(f *pflag.Flag, key string) error {
	if err := shaped(f, a.settings.Get(key)); err != nil {
		return err
	}
	if s, ok := f.Value.(pflag.SliceValue); ok {
		list := a.settings.GetStringSlice(key)
		if one, ok := a.settings.Get(key).(string); ok { // a folder's name may have blanks
			list = []string{one}
		}
		if err := s.Replace(list); err != nil {
			return err
		}
	} else if err := f.Value.Set(a.settings.GetString(key)); err != nil {
		return wrongValue(f, a.settings.GetString(key), err)
	}
	f.Changed = true
	return nil
}

var flagName = regexp.MustCompile(`--([a-z][a-z-]*)`)

// whence says where the flags that a text names have their values from, if nobody typed them.
func (a *app) whence(text string) string {
	var out []string
	for _, m := range flagName.FindAllStringSubmatch(text, -1) {
		if from, ok := a.untyped[m[1]]; ok {
			out = append(out, m[0]+" comes from "+from)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "; ")
}

// shaped refuses a list where one value is wanted, and one of lists: viper takes either for nothing.
func shaped(f *pflag.Flag, value any) error {
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	if _, ok := f.Value.(pflag.SliceValue); !ok {
		return errors.New("want one value, this is a list")
	}
	for _, v := range list {
		switch v.(type) {
		case []any, map[string]any:
			return errors.New("want a list of values, this is one of lists or tables")
		}
	}
	return nil
}

// variableOf is the variable of the environment that stands for a setting.
func variableOf(key string) string {
	return "DMGBENCH_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// settingKey is "run.sets" for the flag --sets of run.
func settingKey(cmd *cobra.Command, flag string) string {
	return strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "), " ", ".") + "." + flag
}

// readSettings reads the settings file if there is one. A key that is no flag is
// an error: a misspelt setting that is passed over changes a measurement silently.
func (a *app) readSettings(root *cobra.Command) error {
	path, must := a.settingsPath()
	if path == "" {
		return nil
	}
	a.settings.SetConfigFile(path)
	a.settings.SetConfigType("toml")
	err := a.settings.ReadInConfig()
	switch {
	case err != nil && !must && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &usageError{err: fmt.Errorf("reading settings %q: %w", path, err)}
	}
	known := knownSettings(root)
	for _, key := range a.settings.AllKeys() {
		if !slices.Contains(known, key) {
			return &usageError{err: fmt.Errorf("reading settings %q: no setting is called %q", path, key),
				hint: "a table is a command, its keys are flags: [run] and engine = \"inprocess\""}
		}
	}
	return nil
}

// settingsPath is the settings file, and whether it has to be there.
func (a *app) settingsPath() (path string, must bool) {
	if p := a.env["DMGBENCH_CONFIG"]; p != "" {
		return p, true
	}
	dir := a.env["XDG_CONFIG_HOME"]
	if home := a.env["HOME"]; dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
		if runtime.GOOS == "darwin" {
			dir = filepath.Join(home, "Library", "Application Support")
		}
	}
	if dir == "" {
		return "", false
	}
	path = filepath.Join(dir, "dmgbench", "config.toml")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	return path, false
}

func knownSettings(root *cobra.Command) []string {
	var keys []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c != root {
			c.LocalFlags().VisitAll(func(f *pflag.Flag) { keys = append(keys, strings.ToLower(settingKey(c, f.Name))) })
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return keys
}
