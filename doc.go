// Package onereply holds the words and the pure rules of an engine that gives
// one accepted reply per press of Send.
//
// A [Submission] (scope, action, key, inputs) creates one durable [Task] with
// one response slot. A worker claims the task and holds an [Assignment]: an
// assignment version that fences out every earlier one, and a renewable lease
// judged by the database's clock. Its [Attempt] counts every [Call] before it is
// sent and hands back a candidate; the engine accepts it in one guarded
// transaction together with the application's own rows. What a failure means is
// decided by [Classify] and [Decide].
//
// A program defines its kinds of task with [Definition] and runs them with
// package engine on a store such as store/sqlite. Start reading at kind.go, then
// outcome.go and retry.go. docs/protocol.md lists the promises P1 to P16 that
// comments refer to.
//
// This package does no I/O and imports only the standard library.
package onereply
