// Package httpapi is the service's face over HTTP: conversations, messages,
// tasks and their event streams.
//
// A request goes through one door ([New]): who is asking (401), may it be asked
// from there (403), is there such a route (404, 405). Its handler then judges
// the body's outside (415, 413), the idempotency key (400), the body (400), and
// hands over to the chat or the engine, which look at the path's resource (404)
// before the key (422, or 200 for a replay). That order is the contract: a
// request refused on the way has recorded nothing and left its key unused.
// Handlers return errors; problem.go says what each is to a client, in one
// place, and server.go logs what is the server's own fault, in one place.
//
// There is one file per resource. Start reading at server.go, then messages.go.
// openapi.json is the contract's exact form; a test holds it against what the
// server answers. [Events] mounts the event stream in someone else's mux.
package httpapi
