package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/plan"
)

// evil wants to be markup, script, a template, a function of the charts, a cell of Markdown, and text in other directions.
const evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`__f__alert(3)__f__ fn:tip {a|b} {{.}} ${x} &lt;b&gt; ]]> <!-- |* " +
	"\u202egnp.exe\u202c \u200f\u2066 עברית العربية 🧨👩‍🚀 "

// hostileFile and hostileRun are names of a plan and of run folders: all that a file system takes that is no separator.
const (
	hostileFile = `"'><img src=x onerror=alert(4)> __f__ {{.}} ` + "\u202egnp.exe עברית 🧨"
	hostileRun  = `"'><img src=x onerror=alert(5)>&amp;#?%41%2f __f__ ` + "\u202e עברית 🧨"
)

// hostilePlan says evil, and 300 letters without a blank, wherever the language takes text of people, and comes as near to it as
// the rules of names allow. "@" and "§" stand for text and a file's name with what makes them evil behind.
var hostilePlan = func() string {
	long := strings.NewReplacer(`"`, `\"`).Replace(evil) + strings.Repeat("Ω", 120) // a line of a plan has 500 bytes at most
	name := "__f__'&;{{.}}$\u202egnp\u202c עברית 🧨 " + strings.Repeat("Ω", 10)
	return strings.NewReplacer("@", " "+long, "§", name).Replace(hostileText)
}()

const hostileText = `
schema  = 1
title   = "title@"
summary = "summary@"
choices = ["choice@"]
[source]
title  = "source@"
author = "author@"
url    = "javascript:alert(6)//@"
on     = { machine = "machine@", os = "system@", tool = "tool@" }
[target]
place = "p__f__alert.7.__f__"
[image]
size        = "12 MB"
filesystem  = "exFAT"
volume_name = "V__f-f__"
[matrix]
format = ["UDRW", "UDSB"]
[[manual]]
name         = "f__alert.8.__f__"
values       = ["1 </script><script>alert(9)</script>\"'` + "`__f__\u202egnp\u202c🧨" + `", "2 <img src onerror:alert(10)>&lt;{{.}}{a|b}עברית"]
instructions = "turn to {value}@"
[inputs.i__f__]
about    = "input@"
size     = "70 kB"
optional = true
[files.f__f__]
sizes = ["64 kB", "96 kB"]
sets  = 2
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "a__f__alert.11.__f__" },
  { do = "measure", phase = "a__f__alert.11.__f__" },
]
[[protocol]]
when  = { baseline = false }
steps = [
  { do = "mkdir", dir = "§" },
  { do = "copy", phase = "copy", from = "i__f__", to = "§/§" },
]
[[protocol]]
when  = { baseline = true }
steps = [
  { do = "mkdir", dir = "<" },
  { do = "copy", phase = "copy", from = "i__f__", to = "</script><script>alert(12)<" },
  { do = "copy", phase = "copy2", from = "i__f__", to = "\"><img src=x onerror=alert(13)>§" },
]
[run]
rounds = 3
canary = false
[[published]]
where = { format = "UDSB", phase = "a__f__alert.11.__f__" }
on    = { machine = "another machine@" }
note  = "note@"
write = "6.13 GB/s"
[[published]]
where = { format = "UDSB", phase = "a__f__alert.11.__f__" }
write = "7 GB/s"
[[published]]
where = { format = "UDRW", phase = "a__f__alert.11.__f__" }
write = "1 GB/s"
[[claim]]
id    = "c__f__alert.14.__f__"
says  = "a claim of ours@"
by    = "us"
note  = "note@"
left  = { allocated = { format = "UDSB", phase = "a__f__alert.11.__f__", "f__alert.8.__f__" = "2 <img src onerror:alert(10)>&lt;{{.}}{a|b}עברית" } }
right = { apparent = { format = "UDRW", phase = "a__f__alert.11.__f__", "f__alert.8.__f__" = "2 <img src onerror:alert(10)>&lt;{{.}}{a|b}עברית" } }
ratio = "< 1"
[[claim]]
says  = "a claim of the author@"
by    = "author"
left  = { write = { format = "UDSB", phase = "a__f__alert.11.__f__", "f__alert.8.__f__" = "2 <img src onerror:alert(10)>&lt;{{.}}{a|b}עברית" } }
right = { write = { format = "UDRW", phase = "a__f__alert.11.__f__", "f__alert.8.__f__" = "2 <img src onerror:alert(10)>&lt;{{.}}{a|b}עברית" } }
ratio = "> 1"
[[fit]]
name     = "fit__f__"
quantity = "write_time"
where    = { format = "UDSB", phase = "a__f__alert.11.__f__" }
along    = "file_size"
model    = "line"
[[relation]]
name = "relation__f__"
says = "a relation@"
x    = { write = { phase = "a__f__alert.11.__f__" } }
y    = { allocated = { phase = "a__f__alert.11.__f__" } }
over = [{ format = "UDRW" }, { format = "UDSB" }]
[[table]]
name    = "table__f__"
title   = "table@"
caption = "caption@"
columns = [
  { title = "write@", group = "group@", write = { phase = "a__f__alert.11.__f__" } },
  { title = "size@", group = "group@", allocated = { phase = "a__f__alert.11.__f__" } },
]
rows = [
  { title = "bundle@", where = { format = "UDSB", "f__alert.8.__f__" = "2 <img src onerror:alert(10)>&lt;{{.}}{a|b}עברית" } },
  { title = "image@", where = { format = "UDRW", "f__alert.8.__f__" = "2 <img src onerror:alert(10)>&lt;{{.}}{a|b}עברית" } },
]
`

// What goes into paths, columns and the tools' arguments takes no hostile name at all.
func TestPlansRefuseHostileNames(t *testing.T) {
	t.Parallel()
	_, problems := plan.Parse("hostile", []byte(hostilePlan))
	assert.Empty(t, problems.Errors(), "%v", problems)
	for _, name := range []string{"V__f-f__", "p__f__alert.7.__f__", "f__alert.8.__f__", "1 </script>", "a__f__alert.11.__f__", "f__f__", "i__f__",
		"c__f__alert.14.__f__", "fit__f__", "relation__f__", "table__f__"} {
		quoted := strings.NewReplacer(`[inputs.`+name+`]`, `[inputs."<`+name+`"]`, `[files.`+name+`]`, `[files."<`+name+`"]`, `"`+name, `"<,`+name).Replace(hostilePlan)
		assert.NotEqual(t, hostilePlan, quoted, name)
		_, problems := plan.Parse("hostile", []byte(quoted))
		assert.NotEmpty(t, problems.Errors(), name)
	}
	for _, text := range []string{"a\u0000b", "a\u0007b", "\x7f"} {
		_, problems := plan.Parse("hostile", []byte(strings.Replace(hostilePlan, `"title `, `"`+text, 1)))
		assert.NotEmpty(t, problems.Errors(), "%q", text)
	}
}
