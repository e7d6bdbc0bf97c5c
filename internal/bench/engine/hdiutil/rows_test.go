package hdiutil

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// apple is the folder with what Apple's tools were seen to print.
var apple = filepath.Join("..", "..", "..", "..", "testdata", "apple")

// row is one output of a tool, where it was seen, and what the driver has to make of it.
type row struct {
	Name, Source, Date, MacOS, Language, Note string
	Inferred                                  bool
	Argv                                      []string
	Status                                    int
	Stdout, Stderr                            string
	Class, Hint                               string
	Retry                                     bool
	Reads                                     string
	Want                                      map[string]any
}

// readRows reads all rows; a file with an unknown key is an error.
func readRows(t *testing.T) (rows []row) {
	files, err := filepath.Glob(filepath.Join(apple, "*.toml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		defer f.Close()
		var list struct{ Row []row }
		require.NoError(t, toml.NewDecoder(f).DisallowUnknownFields().Decode(&list), name)
		rows = append(rows, list.Row...)
	}
	return rows
}

// command is the row's command line as the driver knows it.
func (r row) command() command.Command {
	words := slices.DeleteFunc(slices.Clone(r.Argv), func(w string) bool { return w == "sudo" || strings.HasPrefix(w, "-") })
	if len(words) == 0 {
		return command.Command{}
	}
	c := command.Command{Tool: command.Tool(filepath.Base(words[0])), Args: r.Argv[slices.Index(r.Argv, words[0])+1:]}
	n := 1
	if c.Tool == command.Diskutil && len(words) > 1 && words[1] == "image" {
		n = 2
		if len(words) > 2 && words[2] == "create" {
			n = 3
		}
	}
	verb := strings.Join(words[1:min(n+1, len(words))], " ")
	other := map[string]string{"mount": "attach", "eject": "detach"} // hdiutil's synonyms
	if c.Verb = verb; c.Tool == command.Hdiutil && other[verb] != "" {
		c.Verb = other[verb]
	}
	return c
}

// parsers turn an output into values by name.
var parsers = map[string]func(r row) (map[string]any, error){
	"attach": func(r row) (map[string]any, error) {
		a, err := command.ParseAttach([]byte(r.Stdout))
		disk, _ := a.Disk()
		return map[string]any{"device": disk, "mount": strings.Join(a.MountPoints(), "\n"), "volume": a.Candidate().Device,
			"kind": a.Candidate().Kind, "scheme": a.Scheme(), "devices": len(a.Entities)}, err
	},
	"info": func(r row) (map[string]any, error) {
		i, err := command.ParseInfo([]byte(r.Stdout))
		v := map[string]any{"images": len(i.Images), "vendor": i.Vendor, "framework": i.Framework}
		if len(i.Images) > 0 {
			first := i.Images[0]
			v["device"], _ = first.Disk()
			v["image"], v["type"], v["server"], v["mount"] = first.Image, first.Type, first.Server, strings.Join(first.MountPoints(), "\n")
		}
		return v, err
	},
	"imageinfo":  readImage,
	"image info": readImage,
	"trims": func(r row) (map[string]any, error) {
		list, err := command.ParseTrims([]byte(r.Stdout), fmt.Sprint(r.Want["of"]))
		return map[string]any{"of": r.Want["of"], "lines": len(list)}, err
	},
	"compact": func(r row) (map[string]any, error) {
		return map[string]any{"last": command.ParseMessages(r.Stdout).Last()}, nil
	},
	"messages": func(r row) (map[string]any, error) {
		m := command.ParseMessages(r.Stderr)
		return map[string]any{"deprecated": len(m.Deprecated), "lines": len(m.Lines), "last": m.Last()}, nil
	},
	// What was asked for and is listed.
	"help": func(r row) (map[string]any, error) {
		v := map[string]any{}
		for name := range r.Want {
			v[name] = len(command.FindNames(r.Stdout+"\n"+r.Stderr, []string{name})) > 0
		}
		return v, nil
	},
}

func readImage(r row) (map[string]any, error) {
	i, err := command.ParseImageInfo([]byte(r.Stdout))
	return map[string]any{"format": i.Format, "size": i.Size, "encrypted": i.Encrypted, "scheme": i.Scheme}, err
}

// failure is the error that the driver makes of the row.
func (r row) failure() *ToolError {
	var err error
	if r.Status == 0 {
		err = ErrNoResult
	}
	return newToolError(call{doing: "running", object: "x", cmd: r.command()},
		command.Result{Stdout: []byte(r.Stdout), Stderr: []byte(r.Stderr), Status: r.Status}, err)
}

// Every output that Apple's tools are known to have printed is read as its row asks for.
func TestAppleRows(t *testing.T) {
	rows := readRows(t)
	names, sources, languages := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		assert.False(t, names[r.Name], "two rows have the name %q", r.Name)
		names[r.Name], languages[r.Language] = true, true
		address, _, _ := strings.Cut(r.Source, "#")
		sources[strings.TrimSuffix(address, "/")] = true
		t.Run(r.Name, func(t *testing.T) {
			require.NotEmpty(t, r.Name)
			require.Regexp(t, `^https://`, r.Source)
			require.Regexp(t, `^(\d{4}-\d\d(-\d\d)?)?$`, r.Date)
			require.Regexp(t, `^[a-z]{2}(-[A-Z][A-Za-z]+)?$`, r.Language)
			require.NotEmpty(t, r.Argv)
			require.True(t, r.Class != "" || r.Reads != "", "a row asks for a class or for values")
			require.True(t, !r.Inferred || r.Note != "", "a note says what is inferred")
			if r.Class != "" {
				e := r.failure()
				assert.Equal(t, r.Class, e.Class.name, "status %d: %s%s", r.Status, r.Stdout, r.Stderr)
				assert.Equal(t, r.Retry, triesFor(r.command().Verb, e) > 1, "retry of %s %s", r.command().Tool, r.command().Verb)
				assert.Contains(t, e.Hint, r.Hint)
			}
			if r.Reads == "" {
				return
			}
			parse := parsers[r.Reads]
			require.NotNil(t, parse, "no parser %q", r.Reads)
			values, err := parse(r)
			if r.Class != "" && errors.Is(err, ErrNoResult) {
				return
			}
			require.NoError(t, err)
			for name, want := range r.Want {
				assert.Equal(t, fmt.Sprint(want), fmt.Sprint(values[name]), name)
			}
		})
	}
	t.Logf("%d rows from %d sources in %d languages", len(rows), len(sources), len(languages))
	assert.GreaterOrEqual(t, len(rows), 150, "rows")
	assert.GreaterOrEqual(t, len(sources), 60, "sources")
	assert.GreaterOrEqual(t, len(languages), 9, "languages")
}
