package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
)

// mutation is a source file with one change.
type mutation struct {
	file   string
	line   int
	text   string // the change, for people
	source []byte // the file, changed
}

// edit replaces the bytes from one offset to another.
type edit struct {
	from, to token.Pos
	with     string
}

// swapped lists the operator that takes the place of another.
var swapped = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.LSS: token.LEQ,
	token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

// findMutations lists the mutations of a file: one edit each.
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
	print := func(n ast.Node) string {
		var b bytes.Buffer
		_ = printer.Fprint(&b, set, n) // a buffer takes everything
		return b.String()
	}
	var all []mutation
	ast.Inspect(file, func(n ast.Node) bool {
		for _, e := range edits(n, print) {
			from, to := set.Position(e.from), set.Position(e.to)
			changed := bytes.Join([][]byte{text[:from.Offset], []byte(e.with), text[to.Offset:]}, nil)
			all = append(all, mutation{name, from.Line, fmt.Sprintf("%.60q → %q", text[from.Offset:to.Offset], e.with), changed})
		}
		return true
	})
	return all, nil
}

// edits are the mutations of one node.
func edits(n ast.Node, print func(ast.Node) string) []edit {
	switch n := n.(type) {
	case *ast.IfStmt:
		return []edit{{n.Cond.Pos(), n.Cond.End(), "!(" + print(n.Cond) + ")"}}
	case *ast.BinaryExpr:
		if op, ok := swapped[n.Op]; ok {
			return []edit{{n.OpPos, n.OpPos + token.Pos(len(n.Op.String())), op.String()}}
		}
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			return nil
		}
		if last, ok := n.Results[len(n.Results)-1].(*ast.Ident); ok && last.Name == "err" {
			return []edit{{last.Pos(), last.End(), "nil"}}
		}
	case *ast.ExprStmt:
		return []edit{{n.Pos(), n.End(), ""}}
	case *ast.IncDecStmt:
		return []edit{{n.Pos(), n.End(), ""}}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return []edit{{n.Pos(), n.End(), ""}}
		}
	}
	return nil
}
