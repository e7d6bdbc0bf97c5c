// Command docs writes generated pages of docs/. It is a tool for developers of
// this project:
//
//	go run ./tools/docs             the pages that the registries of the program declare (make docs)
//	go run ./tools/docs -accuracy   docs/accuracy.md and its figure: every study in full, some minutes (make accuracy)
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/template"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/selftest"
	"dmgbench/internal/plan"
)

//go:embed *.tmpl
var templates embed.FS

// pages are the generated pages: each is the template of the same name, filled
// in with data.
var pages = map[string]func() any{
	"plan-language.md": func() any { return plan.LanguageReference() },
	"metrics.md":       func() any { return plan.Quantities },
}

func main() {
	folder := flag.String("o", "docs", "`folder` to write to")
	accuracy := flag.Bool("accuracy", false, "write the page about accuracy instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *accuracy {
		err = writeAccuracy(ctx, *folder, selftest.Options{Seed: 1, Full: true})
	} else {
		err = writePages(*folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func writePages(folder string) error {
	for name := range pages {
		text, err := render(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// render is the text of a page.
func render(name string) ([]byte, error) {
	t, err := template.New(name+".tmpl").Funcs(template.FuncMap{
		"keys": keyTable, "code": code, "cell": cell, "unit": unit, "sentence": analysis.QuantityName,
	}).ParseFS(templates, name+".tmpl")
	if err != nil {
		return nil, fmt.Errorf("reading template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, pages[name]()); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return []byte(b.String()), nil
}

// keyTable is a Markdown table of keys.
func keyTable(keys []plan.KeyDoc) string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning |\n|---|---|---|---|")
	for _, k := range keys {
		fmt.Fprintf(&b, "\n| `%s` | %s | %s | %s |", k.Name, cell(k.Type), cell(k.Default), cell(k.About))
	}
	return b.String()
}

// code is a list of words as code.
func code(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// unit names a base unit.
func unit(base string) string {
	return map[string]string{"B/s": "rate", "s": "time", "B": "size", "1": "pure number"}[base]
}

// cell is text inside a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
