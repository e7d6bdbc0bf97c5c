package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ownVariables are those of the environment that stand for no flag; "secret" ones are told, not shown.
var ownVariables = []struct {
	name   string
	secret bool
}{
	{"DMGBENCH_CONFIG", false}, {"DMGBENCH_STATE", false}, {"DMGBENCH_RUNTIME_DIR", false},
	{"DMGBENCH_PASSPHRASE_FILE", false}, {"DMGBENCH_PASSPHRASE", true}, {"NO_COLOR", false},
}

// writeSettings lists the settings in force and where each comes from: what was
// typed wins over the environment, which wins over the settings file.
func (a *app) writeSettings(s *sheet, cmd *cobra.Command, identify bool) {
	path, _ := a.settingsPath()
	from := "none is there"
	if path != "" {
		from = shown(path, identify)
	}
	s.line("settings file", from)
	n := 0
	set := func(format string, args ...any) { s.line("setting", fmt.Sprintf(format, args...)); n++ }
	known := map[string]bool{}
	for _, key := range knownSettings(cmd.Root()) {
		variable := variableOf(key)
		known[variable] = true
		value := a.env[variable]
		switch f := a.typed(cmd, key); {
		case f != nil:
			set("%s = %s (flag --%s)", key, shown(f.Value.String(), identify), f.Name)
		case value != "":
			set("%s = %s (environment, %s)", key, shown(value, identify), variable)
		case a.settings.InConfig(key):
			set("%s = %s (settings file)", key, shown(fmt.Sprint(a.settings.Get(key)), identify))
		}
	}
	for _, v := range ownVariables {
		known[v.name] = true
		if value := a.env[v.name]; value != "" {
			text := shown(value, identify)
			if v.secret {
				text = "set, not shown"
			}
			set("%s (environment, %s)", text, v.name)
		}
	}
	if n == 0 {
		s.line("settings", "every flag has its default")
	}
	var strangers []string
	for name := range a.env {
		if strings.HasPrefix(name, "DMGBENCH_") && !known[name] {
			strangers = append(strangers, name)
		}
	}
	slices.Sort(strangers)
	for _, name := range strangers {
		s.line("no setting", name+" in the environment stands for no flag and changes nothing")
	}
}

// typed is the flag of this command line that a setting stands for, nil unless it was given there.
func (a *app) typed(cmd *cobra.Command, key string) (given *pflag.Flag) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && settingKey(cmd, f.Name) == key && a.untyped[f.Name] == "" {
			given = f
		}
	})
	return given
}

// shown is a value for other people's eyes: what may have names of people and machines in it takes --identify.
func shown(value string, identify bool) string {
	if !identify && strings.ContainsAny(value, `/\`) {
		return "a path that --identify prints"
	}
	return value
}

// logReader is an engine that asks the system's log what the file system did.
type logReader interface {
	ReadsLog(ctx context.Context) error
}

// writeWitnesses says which accounts of the system a run could set beside its own.
func writeWitnesses(ctx context.Context, s *sheet, e engine.Engine) {
	if _, _, err := hostio.DeviceBytes(existing(".")); err != nil {
		s.line("disk counters", "bytes that the disk moved cannot be read: "+err.Error())
	} else {
		s.line("disk counters", "bytes that the disk moved can be read: a cached read is told from a real one")
	}
	r, ok := e.(logReader)
	if !ok {
		s.line("APFS log", "none here: trims by APFS are logged by macOS alone")
		return
	}
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := r.ReadsLog(limited); err != nil {
		s.line("APFS log", "what APFS trims cannot be read: "+err.Error())
		return
	}
	s.line("APFS log", "what APFS trims at each attach can be read from the system's log")
}
