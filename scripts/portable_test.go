package scripts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onlyHere are what the bash 3.2 and the BSD tools of macOS do not have, and what they have instead.
var onlyHere = []struct{ pattern, instead string }{
	{`\b(declare|local|typeset) -[a-z]*A`, "no associative arrays: a case, or lines and awk"},
	{`\$\{\w+(,,?|\^\^?)[^}]*\}`, "tr A-Z a-z"},
	{`\$\{\w+@[A-Za-z]\}`, "printf %q"},
	{`\b(mapfile|readarray|coproc)\b`, "while IFS= read -r line"},
	{`&>>|\|&`, ">>file 2>&1, 2>&1 |"},
	{`;;?&( |$)`, "one pattern with | between"},
	{`\bwait -[a-z]*n`, "wait PID"},
	{`\b(declare|local) -[a-z]*n\b`, "no references to names"},
	{`\[-1\]`, "no negative index"},
	{`\$\{?(EPOCHSECONDS|EPOCHREALTIME|SRANDOM|BASHPID)\b`, "date +%s"},
	{`\bprintf -v \S+ '?%\(|printf '?%\(`, "date +FORMAT"},
	{`\bshopt -s (globstar|lastpipe|inherit_errexit)`, "find"},
	{`\bdate (-\w*[dIR]|--)|\bdate [^|;)]*%[0-9]*N`, "date -u +%Y-%m-%d; times of Go programs"},
	{`\bstat (-\w*[cf]\b|--)`, "wc -c, ls -l, find -size"},
	{`\bsed (-\w+ )*(-\w*[ir]\b|--)`, "sed -E, and a new file"},
	{`\breadlink -`, "cd DIR && pwd -P"},
	{`\b(realpath|nproc|tac|numfmt|shuf|setsid|flock) `, "what macOS has"},
	{`\bmktemp (-\w*[pu]\b|--)|\bmktemp [^|;)"]*XX+\.`, "mktemp \"$DIR/name-XXXXXX\", mktemp -d"},
	{`\bgrep (-\w+ )*-\w*P`, "grep -E"},
	{`\bsort (-\w+ )*-\w*[VRh]\b`, "sort -n"},
	{`\bxargs (-\w+ )*-\w*[rd]\b`, "a loop"},
	{`\bfind [^|;]*-(printf|regextype|executable)\b`, "find -print"},
	{`\b(head|tail) -\w*c -`, "awk"},
	{`\b(cp|ls|tail|head|du|df|wc|cut|tr|rm|mkdir|ln|touch|chmod|basename|dirname) --\w`, "short options of POSIX"},
	{`\bcp -\w*a`, "cp -Rp"},
	{`\bdu -\w*b`, "du -k"},
	{`\bbase64 -\w*w`, "base64 | tr -d '\\n'"},
	{`\becho -\w*e`, "printf"},
}

// maybeMissing are programs that a script may use once it has looked whether they are there.
var maybeMissing = []string{"timeout", "sha256sum"}

var (
	comment    = regexp.MustCompile(`(^|\s)#.*$`)
	emptyArray = regexp.MustCompile(`\b(\w+)=\(\)`)
	unset      = regexp.MustCompile(`(?m)^set -\w*u`)
)

// unportable returns what of a script does not run on a Mac.
func unportable(script string) (found []string) {
	empty := map[string]bool{}
	for _, m := range emptyArray.FindAllStringSubmatch(script, -1) {
		// An empty array is an unset variable in bash 3.2.
		empty[m[1]] = unset.MatchString(script) && !strings.Contains(script, "${#"+m[1]+"[@]}")
	}
	for line := range strings.Lines(script) {
		code := comment.ReplaceAllString(strings.TrimSpace(line), "")
		for _, o := range onlyHere {
			if regexp.MustCompile(o.pattern).MatchString(code) {
				found = append(found, strings.TrimSpace(line)+": "+o.instead)
			}
		}
		for name := range empty {
			isGuarded := !empty[name] || strings.Contains(code, "${"+name+"[@]+")
			if !isGuarded && strings.Contains(code, `"${`+name+`[@]}"`) {
				found = append(found, strings.TrimSpace(line)+": ${"+name+"[@]+\"${"+name+"[@]}\"}")
			}
		}
		for _, name := range maybeMissing {
			isUsed := regexp.MustCompile(`(^|[;&|(] *|\s)` + name + ` `).MatchString(code)
			isKnown := regexp.MustCompile(`(have|command -v) (\w+ )*` + name).MatchString(script)
			if isUsed && !isKnown && !strings.Contains(code, "apt-get") { // which Linux alone has
				found = append(found, strings.TrimSpace(line)+": look first whether "+name+" is there")
			}
		}
	}
	return found
}

// What Macs run takes nothing that only bash 4 and GNU tools have.
func TestScriptsRunOnMacs(t *testing.T) {
	files := []string{filepath.Join("..", ".ci", "run")}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); ext == ".sh" || ext == ".bash" {
			files = append(files, path)
		}
		return err
	}))
	require.Greater(t, len(files), 10)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Empty(t, unportable(string(text)), file)
	}
}

func TestUnportable(t *testing.T) {
	for _, line := range []string{
		"declare -A sizes", "echo ${name,,}", "mapfile -t lines <file", "make &>>log", "make |& tee log", "wait -n", "echo ${list[-1]}",
		"date -d yesterday", "date +%s%N", "stat -c %s file", "stat -f %z file", "sed -i s/a/b/ file", "sed -r s/a+/b/ file",
		"readlink -f .", "mktemp -p /tmp", "mktemp /tmp/a-XXXXXX.txt", "grep -oP x", "sort -V list", "xargs -r rm", "cp -a a b",
		"ls --all", "timeout 5 make", "set -u\nlist=()\nprintf %s \"${list[@]}\"", "echo -e x", "head -c -1 file",
	} {
		assert.NotEmpty(t, unportable(line+"\n"), line)
	}
	for _, line := range []string{
		"declare -a list", "echo ${name%,*}", "make >>log 2>&1", "wait $pid", "date -u +%Y-%m-%d", "wc -c <file", "sed -E s/a+/b/ file",
		"mktemp -d", "mktemp \"$dir/a-XXXXXX\"", "sort -n", "cp -Rp a b", "have timeout && timeout 5 make", "# date -d yesterday",
		"set -u\nlist=()\nprintf %s ${list[@]+\"${list[@]}\"}", "gh api --jq .id", "grep -E 'a|b'", "make 2>&1 | tee log",
	} {
		assert.Empty(t, unportable(line+"\n"), line)
	}
}
