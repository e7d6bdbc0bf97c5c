// Command mutate changes one line of a package at a time and reports how many
// of the changes its tests notice. It is a tool for developers of this project:
//
//	go run ./tools/mutate -n 30 ./internal/image/gpt
//
// Mutations negate a condition, swap an operator, replace a returned error by
// nil, or drop a statement, at places drawn from a seed. Each builds the tests
// with an overlay, so that no source file is touched, and runs them. A mutation
// that survives is printed with its place: either a test is missing, or the
// mutation does not change behaviour.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 30, "mutations per package")
	seed := flag.Uint64("seed", 1, "`number` that the places are drawn from")
	limit := flag.Duration("timeout", 3*time.Minute, "time per mutation; one that takes longer counts as noticed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, folder := range flag.Args() {
		if err := mutatePackage(ctx, os.Stdout, folder, *n, *seed, *limit); err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
	}
}

// mutatePackage tests n mutations of a package and prints those that survive,
// and the count. Mutations that do not compile do not count.
func mutatePackage(ctx context.Context, w io.Writer, folder string, n int, seed uint64, limit time.Duration) error {
	const format = `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`
	names, err := exec.CommandContext(ctx, "go", "list", "-f", format, folder).Output()
	if err != nil {
		return fmt.Errorf("listing %s: %w", folder, err)
	}
	var all []mutation
	for name := range strings.FieldsSeq(string(names)) {
		found, err := findMutations(name)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	tested, noticed := 0, 0
	for i := 0; i < len(all) && tested < n; i++ {
		m := all[i]
		compiles, passes, err := testMutation(ctx, folder, m, limit)
		if err != nil {
			return err
		}
		if !compiles {
			continue
		}
		if tested++; passes {
			fmt.Fprintf(w, "survives  %s:%d  %s\n", m.file, m.line, m.text)
		} else {
			noticed++
		}
	}
	fmt.Fprintf(w, "%s: the tests notice %d of %d mutations\n", folder, noticed, tested)
	return nil
}

// testMutation runs the tests of a package with one mutation, if it compiles. A
// test that takes longer than the limit fails.
func testMutation(ctx context.Context, folder string, m mutation, limit time.Duration) (
	compiles, passes bool, err error,
) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return false, false, err
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	err = errors.Join(err, os.WriteFile(changed, m.source, 0o600), os.WriteFile(overlay, text, 0o600))
	if err != nil {
		return false, false, err
	}
	program := filepath.Join(dir, "mutated.test")
	build := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, folder}
	if exec.CommandContext(ctx, "go", build...).Run() != nil {
		return false, false, ctx.Err()
	}
	short, stop := context.WithTimeout(ctx, limit)
	defer stop()
	run := exec.CommandContext(short, program, "-test.failfast")
	run.Dir = folder
	return true, run.Run() == nil, ctx.Err()
}

// mutation is a source file with one change.
type mutation struct {
	file   string
	line   int
	text   string // the change, for people
	source []byte // the file, changed
}

// swapped lists the operator that takes the place of another.
var swapped = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.LSS: token.LEQ,
	token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

// findMutations lists the mutations of a file: one edit each, in the order of
// the syntax tree. An edit need not compile: a swapped operator may not fit its
// operands, and a dropped statement may leave a variable unused.
func findMutations(name string) ([]mutation, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", name, err)
	}
	var all []mutation
	replace := func(from, to token.Pos, with string) {
		a, b := set.Position(from), set.Position(to) // of the bytes to replace
		changed := bytes.Join([][]byte{text[:a.Offset], []byte(with), text[b.Offset:]}, nil)
		all = append(all, mutation{name, a.Line, fmt.Sprintf("%.60q → %q", text[a.Offset:b.Offset], with), changed})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			cond := text[set.Position(n.Cond.Pos()).Offset:set.Position(n.Cond.End()).Offset]
			replace(n.Cond.Pos(), n.Cond.End(), fmt.Sprintf("!(%s)", cond))
		case *ast.BinaryExpr:
			if op, ok := swapped[n.Op]; ok {
				replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
			}
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				break
			}
			if last, ok := n.Results[len(n.Results)-1].(*ast.Ident); ok && last.Name == "err" {
				replace(last.Pos(), last.End(), "nil")
			}
		case *ast.ExprStmt, *ast.IncDecStmt:
			replace(n.Pos(), n.End(), "")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				replace(n.Pos(), n.End(), "")
			}
		}
		return true
	})
	return all, nil
}
