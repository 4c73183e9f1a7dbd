package onereply

// Tx is an open transaction of some store, passed through the engine to hooks
// without the engine looking inside. Each store has a Wrap that makes one from
// the driver's own transaction and an Unwrap that gives it back; Unwrap panics
// on another store's Tx, which is a programming error.
//
// A Tx belongs to the goroutine that holds it and ends when the function it
// was given to returns. Do not keep it, and do not wait for a provider while
// holding one (P9).
type Tx interface {
	// TxDriver names the store the transaction belongs to, such as "sqlite".
	TxDriver() string
}
