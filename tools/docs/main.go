// Command docs writes generated pages of docs/. It is a tool for developers of
// this project:
//
//	go run ./tools/docs             the pages that the registries of the program declare (make docs)
//	go run ./tools/docs -accuracy   docs/accuracy.md: every study in full (make accuracy)
//	go run ./tools/docs -site       pages and example reports of the shipped plans, for the site (make site)
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/template"
	"time"

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
	site := flag.Bool("site", false, "write the pages of the plans for the site instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *site:
		err = writeSite(ctx, *folder)
	case *accuracy:
		err = writeAccuracy(ctx, *folder, selftest.Options{Seed: 1, Full: true})
	default:
		for name := range pages {
			text, e := render(name)
			if e == nil {
				e = os.WriteFile(filepath.Join(*folder, name), text, 0o644)
			}
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// writeAccuracy runs all studies of internal/bench/selftest and writes their page.
// It returns an error if a promise of the page is not kept.
func writeAccuracy(ctx context.Context, folder string, o selftest.Options) error {
	o.Done = func(s selftest.Study, took time.Duration) {
		fmt.Fprintf(os.Stderr, "%-10s %s\n", s.ID, took.Round(100*time.Millisecond))
		for _, p := range s.Promises {
			fmt.Fprintf(os.Stderr, "  %s: %s: %s (%s)\n", p.Answer(), p.Says, p.Found(), p.Where)
		}
	}
	r, err := selftest.Run(ctx, o)
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(folder, "accuracy.md"), []byte(r.Page()), 0o644)
	if err == nil && !r.Kept {
		err = fmt.Errorf("not every promise is kept: see %s", filepath.Join(folder, "accuracy.md"))
	}
	return err
}

// render is the text of a page: its template, filled in with what the registries
// of the program declare.
func render(name string) ([]byte, error) {
	t, err := template.New(name+".tmpl").Funcs(template.FuncMap{
		"keys": keyTable, "code": code, "cell": cell, "sentence": analysis.QuantityName,
		"unit": func(base string) string { // its name
			return map[string]string{"B/s": "rate", "s": "time", "B": "size", "1": "pure number"}[base]
		},
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

// cell is text inside a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
