// Package chat is conversations with a model: a person's messages, one reply
// task per press of Send or Regenerate, and the replies that were accepted.
//
// A message and its task are created in one transaction (P2): [Service.Send]
// submits, and the kind's Created hook writes the message's row beside the task.
// The reply is worked on by the kind's Work (reply.go), which asks the model
// about the conversation so far, and its row is written by the Ended hook in the
// transaction that accepts it (P4). Regenerating makes a second task for the
// same question (P12); earlier answers stay, and the newest accepted one is
// shown.
//
// The package knows no database and no queue. It reaches its rows through
// [Store], which store/tables implements, and the engine through
// onereply.Submitter. Start reading at send.go, then reply.go.
package chat
