/** Options of a client; all may be left out in a browser. */
export interface ClientOptions {
  /** Where the service is; default: the page's own origin. */
  baseUrl?: string;
  fetch?: typeof fetch;
  /** Sent with every request, such as Authorization. */
  headers?: Record<string, string>;
  /** Milliseconds one request may take; default 30 000. Streams are not bound by it. */
  timeout?: number;
  limits?: Partial<OutboxLimits>;
  streamLimits?: Partial<StreamLimits>;
  /** Where presses are kept; default IndexedDB. */
  store?: PressStore;
  locks?: LockManager;
  connectivity?: { readonly online: boolean; onReturn(f: () => void, signal: AbortSignal): void; whenOnline(...signals: AbortSignal[]): Promise<void> };
  visibility?: EventTarget & { readonly visibilityState: string };
  BroadcastChannel?: typeof BroadcastChannel;
}

/** All in milliseconds but maxTries. */
export interface OutboxLimits {
  backoffBase: number;
  backoffMax: number;
  giveUpAfter: number;
  maxTries: number;
  longestWait: number;
  retryFor: number;
  keyFor: number;
}

/** All in milliseconds but open, the number of streams at once. */
export interface StreamLimits {
  open: number;
  silence: number;
  lookAfter: number;
  pollSeen: number;
  pollHidden: number;
  backoffBase: number;
  backoffMax: number;
}

export interface PressStore {
  readonly durable: boolean;
  put(press: Press): Promise<void>;
  get(key: string): Promise<Press | undefined>;
  delete(key: string): Promise<void>;
  /** Oldest press first. */
  all(): Promise<Press[]>;
}

/**
 * sending: on its way or waiting for the next try (`why` and `again` say so).
 * not_sent: given up; retry(key) tries again under its own key.
 * refused: by the service, for good; forgotten.
 * known: the service has it; `result` says what it became.
 * elsewhere: another tab settled it; fetch the conversation to see.
 */
export type PressState = "sending" | "not_sent" | "refused" | "known" | "discarded" | "elsewhere";

export interface Press {
  readonly key: string;
  readonly kind: "message" | "regenerate" | "resume";
  readonly state: PressState;
  readonly pressedAt: number;
  readonly turn: number;
  readonly tries: number;
  /** Presses of one lane are delivered one after the other. */
  readonly lane: string;
  readonly body: string;
  readonly path: string | null;
  readonly conversation?: string | null;
  readonly start?: { key: string; body: string };
  /** The message or task a press of Regenerate or Try again is about. */
  readonly target?: string;
  readonly text?: string;
  readonly note?: unknown;
  readonly why?: { code?: string; status?: number; message: string; after?: number };
  /** When the next try is due. */
  readonly again?: number;
  readonly result?: PressResult;
}

export interface PressResult {
  task: Task;
  message?: Message;
  conversation?: string;
}

export interface Pressed {
  readonly key: string;
  readonly press: Press;
  /** Settles when the service has answered for good; null when the press was already on its way. */
  readonly known: Promise<PressResult> | null;
}

export interface Message {
  id: string;
  conversation_id: string;
  role: "user" | "assistant";
  text: string;
  /** The text as HTML, made safe by the service; of assistant messages. */
  html?: string;
  created_at: string;
  task_id?: string;
  reply_to?: string;
  shown?: boolean;
}

export interface Conversation {
  id: string;
  title?: string;
  created_at: string;
  messages?: Message[];
}

export interface Usage { input_tokens: number; output_tokens: number }
export interface Failure { code: string; message: string }
export interface Bound { used: number; max: number }

export interface Task {
  id: string;
  kind: string;
  status: "queued" | "running" | "completed" | "failed" | "cancelled";
  reason?: string;
  error?: Failure;
  assignment_version: number;
  worker?: string;
  lease_until?: string;
  run_at?: string;
  deadline?: string;
  created_at: string;
  ended_at?: string;
  budget: { attempts: Bound; calls: Bound; elapsed_max: string };
  response?: { message_id: string; text: string; html?: string; model: string; finish_reason: string; truncated: boolean; usage: Usage };
  attempts?: Array<{ id: string; version: number; worker: string; started_at: string; ended_at?: string; outcome?: string; error?: Failure; calls: number; operation_id?: string; usage?: Usage }>;
}

export interface TimelineEvent {
  type: string;
  at: string;
  last_at?: string;
  count: number;
  version?: number;
  attempt_id?: string;
  worker?: string;
  call?: number;
  why?: string;
  code?: string;
  detail?: string;
  usage?: Usage;
}

export type WatchEvent =
  | { type: "reset"; version: number; text: string }
  | { type: "delta"; version: number; text: string }
  | { type: "task"; task: Task }
  | { type: "line"; up: boolean } // the line to the service is lost, or back
  | { type: "end"; task: Task }
  | { type: "gone" };

/** A definite refusal, from the service's application/problem+json. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
}

/** The service could not be reached, or said to come back later. */
export class Unavailable extends Error {
  readonly status: number;
  readonly after: number;
}

/** A conversation that is made by the first message sent to it. */
export class NewConversation {
  constructor(title?: string);
  readonly key: string;
  readonly body: string;
  readonly lane: string;
}

export class Client {
  constructor(options?: ClientOptions);
  /** The page's one client for a base URL; the options of the first call count. */
  static shared(options?: ClientOptions): Client;
  start(): Promise<void>;
  send(conversation: string | NewConversation, message: { text: string; policy?: object; documents?: object[] }, note?: object): Pressed;
  regenerate(messageId: string, note?: object): Pressed;
  resume(taskId: string, note?: object): Pressed;
  presses(): Press[];
  onPress(f: (press: Press) => void): () => void;
  retry(key: string): Promise<boolean>;
  stale(press: Press): boolean;
  discard(key: string): Promise<void>;
  hurry(): void;
  watch(taskId: string, f: (event: WatchEvent) => void): () => void;
  task(id: string, options?: { signal?: AbortSignal }): Promise<Task>;
  timeline(id: string, options?: { signal?: AbortSignal }): Promise<TimelineEvent[]>;
  cancel(id: string): Promise<Task>;
  conversations(options?: { after?: string; limit?: number; signal?: AbortSignal }): Promise<{ data: Conversation[]; next?: string }>;
  conversation(id: string, options?: { signal?: AbortSignal }): Promise<Conversation & { messages: Message[] }>;
  deleteConversation(id: string): Promise<void>;
  onDeleted(f: (conversation: string) => void): () => void;
  close(): void;
}
