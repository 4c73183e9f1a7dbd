// Command bench measures what the product promises about speed and memory, and
// writes docs/benchmarks.md from what it measured.
//
// Absolute figures mean little on a shared machine, so every rate is a ratio of
// two sides measured in the same run, one after the other, several times over:
// the product, and the same rows written in plain SQL. Medians and spread are
// printed, with facts of the machine beside them. Nothing asserts a time.
//
//	go run . [-runs 5] [-only REGEXP] [-json results.json] [-markdown ../docs/benchmarks.md]
//	go run . -from results.json -markdown ../docs/benchmarks.md
//
// It is a module of its own, so that rivals are no dependencies of the product.
// Start reading at main.go; each measure has a file.
package main
