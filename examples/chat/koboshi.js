// src/display/announce.ts
var regions = {};
function prepare() {
  const body = globalThis.document?.body;
  if (!body) return globalThis.document?.addEventListener("DOMContentLoaded", prepare, { once: true });
  for (const kind of ["polite", "assertive"]) {
    if (regions[kind]?.isConnected) continue;
    const region = regions[kind] = document.createElement("div");
    region.setAttribute("role", kind === "polite" ? "status" : "alert");
    region.setAttribute("aria-live", kind);
    region.dataset.koboshi = kind;
    region.style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)";
    body.append(region);
  }
}
function announce(text, kind, lang) {
  prepare();
  const region = regions[kind];
  if (!region) return;
  region.lang = lang;
  region.replaceChildren(document.createTextNode(text));
}

// src/display/phrases.ts
var PHRASES = {
  en: {
    retry: "Try again",
    retrying: "Trying again…",
    trim: "Shorten the conversation",
    new: "Start a new conversation",
    dismiss: "Dismiss",
    copy: "Copy the code",
    copied: "Copied",
    stop: "Stop",
    tried: "Tried {count} times.",
    wait: "You can try again in {time}.",
    wait_until: "You can try again at {time}.",
    auto: "The next try starts in {time}.",
    ready: "You can try again now.",
    offline: "This device is offline. You can try again when it is online.",
    kinds: {
      connection_failed: ["The server cannot be reached.", "Check the network of this device, then try again."],
      unauthorized: ["You are not signed in, or the sign-in has expired.", "Sign in again, then go on."],
      conversation_not_found: ["This conversation has ended and is no longer on the server.", "What you see stays on the screen. Start a new conversation to go on."],
      outbox_full: ["Too many messages wait to be sent.", "Wait until the connection is back, then send this one again."],
      superseded: ["This page was opened again, and the newer one goes on.", "Go on in the newer window."],
      internal: ["Something went wrong.", "Try again. If it goes on, tell the people who run this site the code below."]
    }
  },
  ja: {
    retry: "もう一度試す",
    retrying: "再試行しています…",
    trim: "会話を短くする",
    new: "新しい会話を始める",
    dismiss: "閉じる",
    copy: "コードをコピー",
    copied: "コピーしました",
    stop: "停止",
    tried: "{count} 回試しました。",
    wait: "{time}後に再試行できます。",
    wait_until: "{time} に再試行できます。",
    auto: "{time}後に自動で再試行します。",
    ready: "再試行できます。",
    offline: "この端末はオフラインです。オンラインに戻ると再試行できます。",
    kinds: {
      connection_failed: ["サーバーに接続できません。", "この端末のネットワークを確認してから、もう一度お試しください。"],
      unauthorized: ["サインインしていないか、サインインの期限が切れています。", "もう一度サインインしてから続けてください。"],
      conversation_not_found: ["この会話は終了し、サーバーには残っていません。", "画面の内容はそのまま残ります。続けるには、新しい会話を始めてください。"],
      outbox_full: ["送信待ちのメッセージが多すぎます。", "接続が回復してから、もう一度送信してください。"],
      superseded: ["このページが別の場所で開き直されたため、新しいほうで続いています。", "新しいほうのウィンドウで続けてください。"],
      internal: ["問題が発生しました。", "もう一度お試しください。続く場合は、下のコードをサイトの管理者にお知らせください。"]
    }
  }
};

// src/display/style.ts
var STYLE = `
:host{display:block;font:var(--koboshi-error-font,inherit);line-height:1.5;
--a:var(--koboshi-error-accent,light-dark(#b3261e,#ffb4ab));
--b:var(--koboshi-error-bg,color-mix(in srgb,var(--a) 5%,Canvas));
--l:var(--koboshi-error-border,color-mix(in srgb,var(--a) 28%,Canvas));
--g:var(--koboshi-error-gap,.75rem)}
:host([tone=warning]){--a:var(--koboshi-error-accent,light-dark(#855300,#f5bf6b))}
:host([tone=info]){--a:var(--koboshi-error-accent,light-dark(#30568a,#acf))}
:host([hidden]),[hidden]{display:none!important}
*{box-sizing:border-box;margin:0}
.box{display:flex;gap:var(--g);padding:var(--g) calc(var(--g)*1.25);color:var(--koboshi-error-fg,CanvasText);background:var(--b);border:1px solid var(--l);border-inline-start:3px solid var(--a);border-radius:var(--koboshi-error-radius,.625rem);overflow-wrap:anywhere;word-break:auto-phrase;font-variant-numeric:tabular-nums}
.icon{flex:none;color:var(--a);width:1.25rem;height:1.25rem;margin-top:.125rem;border:1.5px solid;border-radius:50%;font:700 .75rem/1.125rem sans-serif;text-align:center}
.body{flex:1;min-width:0;display:grid;gap:.25rem}
.message{font-weight:600}
.row{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem .75rem;margin-top:.5rem}
button{font:inherit;min-height:2rem;min-width:2rem;color:inherit;background:none;border:1px solid transparent;border-radius:.5rem;cursor:pointer;padding:.125rem .5rem}
.retry,.stop{border-color:var(--a);color:var(--a);font-weight:600;padding:.25rem .875rem}
.retry[aria-disabled=true]{border-style:dashed;font-weight:400}
.details{font-size:.8125em;display:flex;flex-wrap:wrap;align-items:center;gap:0 .75rem;margin-top:.25rem}
.code{font-family:ui-monospace,monospace}
.copy{text-decoration:underline;padding-inline:0}
.dismiss{flex:none;align-self:flex-start;margin:-.25rem -.5rem 0 0;padding:0;font-size:1.25em;line-height:1}
button:hover:not([aria-disabled=true]){background:color-mix(in srgb,var(--a) 10%,transparent)}
:focus-visible{outline:2px solid var(--a)}
:host([compact]) .box{padding:.375rem var(--g)}:host([compact]) .details{display:none}
@media (forced-colors:active){.box{border-inline-start-width:6px}.retry[aria-disabled=true]{color:GrayText;border-color:GrayText}}
`;

// src/display/element.ts
var LONG_MS = 12e4;
var DAY_MS = 864e5;
var MAX_AUTO = 3;
var HTML = `<div part=container class=box role=group aria-labelledby=m tabindex=-1><span part=icon class=icon aria-hidden=true><slot name=icon>!</slot></span><div class=body><p part=message class=message id=m><slot name=message></slot></p><p class=tried></p><p part=suggestion class=suggestion><slot name=suggestion></slot></p><div class=row><slot name=actions><button part=retry class=retry type=button></button></slot><span part=countdown class=countdown role=timer></span><button class=stop type=button></button></div><div part=details class=details><slot name=details><span part=code class=code></span><button class=copy type=button></button></slot></div></div><button part=dismiss class=dismiss type=button>×</button></div>`;
var Base = globalThis.HTMLElement ?? class {
};
var KoboshiErrorElement = class extends Base {
  static observedAttributes = ["lang", "busy", "auto"];
  /** Makes the live regions; called when the element is defined. */
  static prepare = prepare;
  #error = null;
  #retryAt = null;
  #tried = 0;
  #phrases = {};
  /** How often it tried by itself; a person who stops it leaves none. */
  #autos = 0;
  /** When an automatic try starts. */
  #autoAt = 0;
  #timer;
  #wasWaiting = false;
  #cameFrom = null;
  #look = () => this.#tick();
  #parts = {};
  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    root.innerHTML = HTML;
    for (const part of root.querySelectorAll("[class]")) this.#parts[part.className] = part;
    this.#at("retry").onclick = () => this.#press();
    this.#at("stop").onclick = () => {
      this.#autos = MAX_AUTO;
      this.#tick();
    };
    this.#at("copy").onclick = () => void this.#copy();
    this.#at("dismiss").onclick = () => this.#dismiss();
  }
  connectedCallback() {
    for (const type of ["online", "offline"]) window.addEventListener(type, this.#look);
    document.addEventListener("visibilitychange", this.#look);
    this.#render();
  }
  disconnectedCallback() {
    clearTimeout(this.#timer);
    for (const type of ["online", "offline"]) window.removeEventListener(type, this.#look);
    document.removeEventListener("visibilitychange", this.#look);
  }
  attributeChangedCallback() {
    this.#render();
  }
  get error() {
    return this.#error;
  }
  set error(error) {
    if (error === this.#error) return;
    if (!this.#error) this.#cameFrom = document.activeElement;
    this.#error = error;
    this.#retryAt = null;
    const facts = this.#facts();
    if (facts?.afterMs) this.#retryAt = performance.now() + facts.afterMs;
    this.#autoAt = (this.#retryAt ?? performance.now()) + (1 + Math.random()) * Math.max(500, (facts?.afterMs ?? 0) / 10);
    this.#wasWaiting = this.#rest() > 0;
    this.busy = false;
    this.#render();
    if (facts && !(this.#autos && this.#isAutomatic())) announce([facts.message, facts.suggestion, this.#waitText()].join(" "), "scope" in error && error.scope !== "turn" ? "polite" : "assertive", this.#lang());
  }
  /** When the next try is worth it, on the clock of `performance.now()`. */
  get retryAt() {
    return this.#retryAt;
  }
  set retryAt(at) {
    this.#retryAt = at;
    this.#wasWaiting = this.#rest() > 0;
    this.#tick();
  }
  /** How often it was tried before it failed, where the error does not say. */
  get tried() {
    return this.#tried;
  }
  set tried(count) {
    this.#tried = count;
    this.#render();
  }
  get phrases() {
    return this.#phrases;
  }
  set phrases(phrases) {
    this.#phrases = phrases;
    this.#render();
  }
  show(error) {
    this.error = error;
  }
  clear() {
    this.#autos = 0;
    const hadFocus = this.shadowRoot?.activeElement != null;
    this.error = null;
    if (hadFocus && this.#cameFrom instanceof HTMLElement) this.#cameFrom.focus();
  }
  focus(options) {
    const retry = this.#at("retry");
    (retry.hidden ? this.#at("box") : retry).focus(options);
  }
  #at(name) {
    return this.#parts[name];
  }
  #lang() {
    return this.lang || this.closest("[lang]")?.lang || document.documentElement.lang || navigator.language;
  }
  #words() {
    return { .../^ja\b/i.test(this.#lang()) ? PHRASES.ja : PHRASES.en, ...this.#phrases };
  }
  #facts() {
    const error = this.#error;
    if (!error) return null;
    const { kinds } = this.#words();
    const isOwn = "origin" in error && error.origin === "client";
    const own = isOwn ? kinds[error.kind] ?? kinds.internal : void 0;
    const code = "errorCode" in error ? error.errorCode : error.kbs;
    const later = "errorCode" in error ? error.retryable : error.retry?.later ?? false;
    const action = code.endsWith("-4002") ? "trim" : code.endsWith("-9002") ? "new" : later ? "retry" : null;
    return {
      message: own?.[0] ?? (error.message || kinds.internal[0]),
      suggestion: own?.[1] ?? error.suggestion ?? "",
      code: [code, "detail" in error ? error.detail : ""].filter(Boolean).join(" · "),
      action,
      afterMs: action !== "retry" ? 0 : "errorCode" in error ? (error.retryAfterSeconds ?? 0) * 1e3 : error.retry?.afterMs ?? 0
    };
  }
  #rest() {
    return Math.max(0, (this.#retryAt ?? 0) - performance.now());
  }
  #render() {
    const facts = this.#facts();
    this.hidden = !facts;
    if (!facts) return this.#tick();
    const words = this.#words();
    const retry = this.#at("retry");
    const hadFocus = this.shadowRoot?.activeElement === retry;
    const put = (name, text) => {
      const place = this.#at(name);
      (place.querySelector("slot") ?? place).textContent = text;
      place.hidden = !text && !this.querySelector(`[slot=${name}]`);
    };
    put("message", facts.message);
    const tried = this.#tried || this.#error.tried || 0;
    put("tried", tried > 1 ? fill(words.tried, { count: `${tried}` }) : "");
    put("suggestion", facts.suggestion);
    put("code", facts.code);
    put("copy", facts.code && words.copy);
    put("stop", words.stop);
    this.#at("row").hidden = retry.hidden = !facts.action;
    retry.textContent = this.busy ? words.retrying : facts.action ? words[facts.action] : "";
    this.#at("dismiss").setAttribute("aria-label", words.dismiss);
    if (hadFocus && retry.hidden) this.#at("box").focus();
    this.#tick();
  }
  #isAutomatic() {
    return this.auto && !this.busy && this.#autos < MAX_AUTO && this.#facts()?.action === "retry";
  }
  #waitText() {
    const words = this.#words();
    const lang = this.#lang();
    if (!this.#facts()?.action) return "";
    if (!navigator.onLine) return words.offline;
    const isAuto = this.#isAutomatic();
    const rest = isAuto ? this.#autoAt - performance.now() : this.#rest();
    if (this.busy || rest <= 0) return "";
    if (rest <= LONG_MS) {
      const seconds = new Intl.NumberFormat(lang, { style: "unit", unit: "second", unitDisplay: "long" }).format(Math.ceil(rest / 1e3));
      return fill(isAuto ? words.auto : words.wait, { time: seconds });
    }
    const date = rest > DAY_MS / 2 ? { month: "long", day: "numeric" } : {};
    return fill(words.wait_until, { time: new Intl.DateTimeFormat(lang, { ...date, hour: "numeric", minute: "2-digit" }).format(Date.now() + rest) });
  }
  /** Shows the rest of the wait, and looks again when it will have changed. */
  #tick() {
    clearTimeout(this.#timer);
    const countdown = this.#at("countdown");
    countdown.textContent = this.#waitText();
    countdown.hidden = !countdown.textContent;
    this.#at("stop").hidden = !this.#isAutomatic();
    const isWaiting = this.#rest() > 0;
    this.#at("retry").setAttribute("aria-disabled", String(this.busy || isWaiting || !navigator.onLine));
    if (!this.#error || !this.isConnected) return;
    if (this.#wasWaiting && !isWaiting) {
      this.#wasWaiting = false;
      if (!this.#isAutomatic()) announce(this.#words().ready, "polite", this.#lang());
    }
    const isAuto = this.#isAutomatic();
    const rest = isAuto ? this.#autoAt - performance.now() : this.#rest();
    if (rest > 0) this.#timer = setTimeout(this.#look, rest > LONG_MS ? 3e4 : rest % 1e3 || 1e3);
    else if (isAuto && navigator.onLine) {
      this.#autos++;
      this.#ask();
    }
  }
  #press() {
    if (this.busy) return;
    const wait = this.#waitText();
    if (this.#rest() > 0 || !navigator.onLine) return announce(wait, "polite", this.#lang());
    this.#ask();
  }
  #ask() {
    const action = this.#facts()?.action;
    if (!action || !this.#error) return;
    const detail = { error: this.#error, turn: "turn" in this.#error ? this.#error.turn : void 0, id: `y-${Math.random().toString(36).slice(2)}`, action };
    if (this.#fire("retry", detail)) this.busy = true;
  }
  /** Whether the page let the event have its effect. */
  #fire(name, detail) {
    return this.dispatchEvent(new CustomEvent(`koboshi-${name}`, { detail, bubbles: true, composed: true, cancelable: true }));
  }
  async #copy() {
    const text = this.#facts()?.code ?? "";
    this.#fire("copy", { text });
    try {
      await navigator.clipboard.writeText(text);
      this.#at("copy").textContent = this.#words().copied;
      announce(this.#words().copied, "polite", this.#lang());
    } catch {
    }
  }
  #dismiss() {
    this.#fire("dismiss", { error: this.#error });
    this.clear();
  }
};
for (const name of ["busy", "auto", "compact"]) {
  Object.defineProperty(KoboshiErrorElement.prototype, name, {
    get() {
      return this.hasAttribute(name);
    },
    set(isOn) {
      this.toggleAttribute(name, isOn);
    }
  });
}
Object.defineProperty(KoboshiErrorElement.prototype, "tone", {
  get() {
    return this.getAttribute("tone") ?? "error";
  },
  set(tone) {
    this.setAttribute("tone", tone);
  }
});
function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// src/display/define.ts
if (globalThis.customElements && !customElements.get("koboshi-error")) {
  customElements.define("koboshi-error", KoboshiErrorElement);
  KoboshiErrorElement.prepare();
}

// src/error.ts
var KoboshiError = class extends Error {
  name = "KoboshiError";
  constructor({ message, ...parts }) {
    super(message);
    Object.assign(this, parts);
  }
};
function serverError({ retry, request: detail, recoverable = true, ...error }, turn, tried) {
  return new KoboshiError({ kind: "internal", kbs: "", scope: "connection", ...error, recoverable, retry: retry && { later: retry.later, afterMs: retry.after_ms ?? 0 }, turn, tried, detail, origin: "server" });
}
var OWN = {
  connection_failed: [1001, 1001],
  connection_closed: [1005, 1003],
  unauthorized: [2001, 2001],
  permission_denied: [2003, 2001],
  invalid_request: [4004, 3001],
  invalid_message: [4006, 3001],
  message_too_large: [4007, 3002],
  internal: [9001, 5001],
  conversation_not_found: [9002, 3001]
};
function clientError(kind, later, message = kind, scope = "connection") {
  const [digits, code] = OWN[kind] ?? ["", 0];
  return new KoboshiError({ kind, code, kbs: digits && `KBS-${digits}`, message, recoverable: later, retry: { later, afterMs: 0 }, scope, origin: "client" });
}

// src/limits.ts
var HANDSHAKE_MS = 1e4;
var PONG_MS = 3e3;
var CLOCK_JUMP_MS = 5e3;
var HIDDEN_MS = 3e5;
var STABLE_MS = 5e3;
var FIRST_BACKOFF_MS = 500;
var MAX_BACKOFF_MS = 15e3;
var CONNECT_TIMEOUT_MS = 3e4;
var HEARTBEAT_MS = 2e4;
var RECONNECT_MS = 3e3;
var MAX_FRAME_UNITS = 32e6;
var MAX_TEXT_UNITS = 16e6;
var MAX_CALLS = 1e3;
var MAX_MESSAGES = 1e3;
var MAX_SNAPSHOT_MESSAGES = 1e4;
var MAX_OUTBOX_ENTRIES = 50;
var MAX_OUTBOX_UNITS = 256 * 1024;
var MAX_EVENTS = 256;
var MAX_REMEMBERED = 200;

// src/transcript.ts
var EMPTY = { epoch: null, seq: 0, messages: [], open: null, pages: null };
function reduce(t, frame) {
  const next = step(t, frame);
  if (typeof next !== "string") return [next, "applied"];
  return [next === "stale" || next === "ignored" && frame.seq ? { ...t, seq: frame.seq } : t, next];
}
function step(t, frame) {
  if (frame.type === "session") return begin(t, frame);
  if (frame.type === "snapshot") return snapshot(t, frame);
  const { seq } = frame;
  if (seq === void 0) return "ignored";
  if (!Number.isSafeInteger(seq) || t.pages) return "gap";
  if (seq <= t.seq) return "duplicate";
  if ((frame.first ?? seq) !== t.seq + 1) return "gap";
  return logged({ ...t, seq }, frame);
}
function begin(t, { resumed, epoch, seq }) {
  if (resumed === "new") return { ...EMPTY, epoch, seq: Number(seq) || 0 };
  if (resumed === "replay" && epoch === t.epoch) return { ...t, pages: null };
  if (resumed === "snapshot") return { ...t, pages: [] };
  return resumed === "lost" ? t : "gap";
}
function snapshot(t, { epoch, upto, after, messages, open = null, more }) {
  if (!Array.isArray(messages) || !Number.isSafeInteger(upto)) return "gap";
  let before = after === void 0 ? [] : t.pages ?? [];
  if (before.length === 0 && after !== void 0) {
    const held = t.messages.findIndex((message) => message.id === after);
    if (held < 0) return "gap";
    before = t.messages.slice(0, held + 1);
  }
  const pages = [...before, ...messages];
  return more ? { ...t, pages } : { epoch, seq: upto, messages: pages, open, pages: null };
}
function logged(t, frame) {
  const { type, turn } = frame;
  if (type === "accepted") return accepted(t, frame);
  if (type === "rewind") return rewind(t, frame);
  if (type === "tool_state") return toolState(t, frame);
  if (type === "done") return done(t, frame);
  if (!/^(content|reasoning|tool_call|retry|degraded|trimmed|error)$/.test(type)) return "ignored";
  if (turn === void 0) return t;
  const { open } = t;
  const attempt = type === "retry" ? frame.answer_attempt : frame.attempt;
  if (!open || open.turn !== turn || (attempt ?? open.attempt) !== open.attempt) return "stale";
  const change = (changed) => ({ ...t, open: { ...open, ...changed } });
  switch (type) {
    case "content":
      return frame.at === open.text.length && typeof frame.data === "string" ? change({ text: open.text + frame.data }) : "gap";
    case "tool_call": {
      const { call, name, arguments: args, runs, at_most_once } = frame;
      if (open.calls.some((held) => held.call === call)) return "ignored";
      return change({ calls: [...open.calls, { call, name, arguments: args, runs, state: "offered", at: open.text.length, at_most_once: at_most_once === false ? false : void 0 }] });
    }
    case "degraded":
      return change({ degraded: frame.source });
    case "error":
      return change({ error: errorOf(frame) });
    default:
      return t;
  }
}
function errorOf({ type: _, seq: __, first: ___, turn: ____, attempt: _____, ...error }) {
  return error;
}
var fresh = (turn) => ({ turn, attempt: 1, text: "", calls: [] });
var isAnswer = (message) => message.role === "assistant";
function waiting(messages) {
  const answered = new Set(messages.filter(isAnswer).map(({ turn }) => turn));
  return messages.map(({ turn }) => turn).filter((turn) => !answered.has(turn));
}
function accepted(t, { turn, id, content, queued }) {
  const messages = [...t.messages, { role: "user", turn, id, content }];
  return { ...t, messages, open: queued && t.open ? t.open : fresh(turn) };
}
function rewind(t, { turn, attempt, to }) {
  const finished = t.messages.find((message) => isAnswer(message) && message.turn === turn);
  const open = t.open ?? (finished ? { ...fresh(turn), attempt: 0, text: finished.content, calls: finished.calls ?? [] } : null);
  if (!open || open.turn !== turn || attempt <= open.attempt) return "stale";
  if (!(to >= 0 && to <= open.text.length)) return "gap";
  const messages = t.messages.filter((message) => message !== finished);
  const calls = open.calls.filter(({ at }) => at <= to);
  return { ...t, messages, open: { turn, attempt, text: open.text.slice(0, to), calls } };
}
function toolState(t, { call, state, by, content }) {
  let known = false;
  const change = (calls) => calls.map((held) => {
    if (held.call !== call) return held;
    known = true;
    return { ...held, state, by, content: content ?? held.content };
  });
  const open = t.open && { ...t.open, calls: change(t.open.calls) };
  const messages = known ? t.messages : t.messages.map((message) => isAnswer(message) && message.calls ? { ...message, calls: change(message.calls) } : message);
  return known ? { ...t, open, messages } : "ignored";
}
function done(t, { turn, attempt, message: id, reason, chars, degraded }) {
  const running = t.open?.turn === turn ? t.open : null;
  if (!running && !waiting(t.messages).includes(turn)) return "stale";
  const open = running ?? { ...fresh(turn), attempt };
  if (attempt !== open.attempt) return "stale";
  if (chars !== open.text.length) return "gap";
  const message = {
    role: "assistant",
    turn,
    id,
    content: open.text,
    attempt,
    reason,
    calls: open.calls.length ? open.calls : void 0,
    degraded: degraded ?? open.degraded,
    error: open.error
  };
  const messages = [...t.messages];
  messages.splice(messages.map((held) => held.turn).lastIndexOf(turn) + 1, 0, message);
  const [next] = waiting(messages);
  return { ...t, messages, open: running ? next === void 0 ? null : fresh(next) : t.open };
}

// src/connection.ts
var FATAL = {
  4400: "invalid_message",
  4401: "unauthorized",
  4403: "permission_denied",
  4404: "conversation_not_found",
  4406: "invalid_message",
  4409: "superseded",
  4413: "message_too_large"
};
var Connection = class {
  phase = "idle";
  /** Raised by every connection; what was sent on an earlier one may be lost. */
  generation = 0;
  #world;
  #options;
  #owner;
  #socket = null;
  #failures = 0;
  /** When the first attempt was made since someone looks and there is a network; it may take forever once it was open. */
  #startedAt = null;
  #openedAt = null;
  #isTicketFresh = false;
  #heartbeat = HEARTBEAT_MS;
  #reconnectMs = RECONNECT_MS;
  /** What the server said before it closed. */
  #refusal = null;
  #heardAt = 0;
  /** Calls off each timer that runs, by its purpose. */
  #timers = /* @__PURE__ */ new Map();
  #stopWatching = null;
  constructor(world, options, owner) {
    this.#world = world;
    this.#options = options;
    this.#owner = owner;
  }
  /** Connects if that was not done yet, or again after the end. */
  start() {
    if (this.phase !== "idle" && this.phase !== "closed") return;
    this.#stopWatching ??= this.#world.visibility.subscribe(() => this.#look());
    [this.#failures, this.#startedAt, this.#isTicketFresh] = [0, null, false];
    void this.#attempt();
  }
  send(frame) {
    this.#socket?.send(JSON.stringify(frame));
  }
  /** Drops the socket and comes back, because what came does not fit. */
  resync() {
    this.#drop();
    this.#later(this.#backoff());
  }
  close(error = null, isEnded = false) {
    if (this.phase === "closed") return;
    this.#drop();
    this.#stopWatching?.();
    this.#stopWatching = null;
    this.#enter("closed");
    this.#owner.closed(error, isEnded);
  }
  #enter(phase) {
    this.phase = phase;
    this.#owner.phase(phase);
  }
  #after(purpose, ms, callback) {
    this.#stop(purpose);
    this.#timers.set(purpose, this.#world.schedule(() => {
      this.#timers.delete(purpose);
      callback();
    }, ms));
  }
  #stop(purpose) {
    this.#timers.get(purpose)?.();
    this.#timers.delete(purpose);
  }
  /** Whether an attempt is worth it: someone looks, and there is a network. A server on this machine needs none. */
  #mayTry() {
    const { hidden, online } = this.#world.visibility;
    return !hidden && (online || /\/\/(localhost|127\.|\[::1])/.test(this.#options.url));
  }
  async #attempt() {
    this.#stop("retry");
    if (!this.#mayTry()) {
      if (this.#startedAt !== Infinity) this.#startedAt = null;
      return this.#enter("waiting");
    }
    this.#startedAt ??= this.#world.now();
    const generation = ++this.generation;
    const isCurrent = () => generation === this.generation && this.phase !== "closed";
    this.#enter("connecting");
    this.#refusal = null;
    this.#after("handshake", HANDSHAKE_MS, () => this.#fail());
    const hello = this.#owner.hello();
    let ticket;
    if (this.#options.ticket && (this.#isTicketFresh || !hello.resume)) {
      try {
        ticket = await this.#ticket(this.#options.ticket);
      } catch (cause) {
        if (isCurrent()) {
          this.#refusal = clientError("unauthorized", true, `no ticket: ${cause}`);
          this.#fail();
        }
      }
      if (!isCurrent()) return;
    }
    if (!this.#world.WebSocket) {
      return this.close(clientError("no_websocket", false, 'no WebSocket: pass that of "ws", or use Node.js 22'));
    }
    let socket;
    try {
      socket = new this.#world.WebSocket(this.#options.url, ["koboshi.v1"]);
    } catch (cause) {
      return this.close(clientError("connection_failed", false, `${cause}`));
    }
    this.#socket = socket;
    socket.onopen = () => isCurrent() && this.send({ ...hello, ticket });
    socket.onmessage = (event) => isCurrent() && this.#receive(event.data);
    socket.onerror = () => {
    };
    socket.onclose = (event) => isCurrent() && this.#fail(event.code);
  }
  async #ticket(ticket) {
    if (typeof ticket === "function") return ticket();
    const { fetch } = this.#world;
    const answer = await fetch(ticket, { method: "POST" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return (await answer.json()).ticket;
  }
  #receive(data) {
    this.#heardAt = this.#world.now();
    this.#stop("pong");
    let frame = null;
    try {
      if (data.length <= MAX_FRAME_UNITS) frame = JSON.parse(data);
    } catch {
    }
    if (typeof frame?.type !== "string") {
      this.#owner.warn(clientError("invalid_message", true, "unreadable frame"));
      return this.resync();
    }
    switch (frame.type) {
      case "session":
        this.#opened(frame);
        break;
      case "pong":
        return;
      case "goaway":
        if (frame.reconnect_ms >= 0) this.#reconnectMs = frame.reconnect_ms;
        return this.#after("retry", this.#world.random() * Math.min(frame.in_ms ?? 0, frame.reconnect_ms ?? Infinity), () => this.#replace());
      case "error":
        if (frame.seq === void 0 && frame.scope !== "turn") this.#refusal = serverError(errorOf(frame));
    }
    this.#owner.frame(frame);
  }
  #opened({ heartbeat_ms, reconnect_ms }) {
    this.#stop("handshake");
    [this.#openedAt, this.#startedAt, this.#isTicketFresh] = [this.#world.now(), Infinity, false];
    if (heartbeat_ms > 0) this.#heartbeat = heartbeat_ms;
    if (reconnect_ms >= 0) this.#reconnectMs = reconnect_ms;
    this.#enter("open");
    this.#watch();
    this.#look();
  }
  /** The socket is gone, or was given up. */
  #fail(code = 0) {
    this.#drop();
    const refusal = this.#refusal;
    if (code === 1e3 || code === 4410) return this.close(null, code === 4410);
    if (code === 4401 && this.#options.ticket && !this.#isTicketFresh) {
      this.#isTicketFresh = true;
      return void this.#attempt();
    }
    const fatal = FATAL[code];
    if (fatal) return this.close(refusal ?? clientError(fatal, code === 4401, `closed with ${code}`));
    const isMove = [4200, 4208, 1001, 1012].includes(code);
    const wait = Math.max(isMove ? this.#world.random() * this.#reconnectMs : this.#backoff(), refusal?.retry?.afterMs ?? 0);
    const { connectTimeout = CONNECT_TIMEOUT_MS, maxRetries = Infinity } = this.#options;
    const isTooLate = this.#world.now() - this.#startedAt + wait > connectTimeout;
    if (isTooLate || this.#failures > maxRetries) {
      return this.close(refusal ?? clientError("connection_failed", true, `closed with ${code}`));
    }
    this.#later(wait);
  }
  /** The next wait, drawn from the whole range (full jitter). */
  #backoff() {
    return this.#world.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** this.#failures++);
  }
  #later(ms) {
    this.#enter("waiting");
    this.#after("retry", ms, () => void this.#attempt());
  }
  /** Lets go of the socket without reading what is left in it. */
  #drop() {
    this.generation++;
    for (const purpose of this.#timers.keys()) this.#stop(purpose);
    if (this.#openedAt !== null && this.#world.now() - this.#openedAt > STABLE_MS) this.#failures = 0;
    this.#openedAt = null;
    const socket = this.#socket;
    this.#socket = null;
    try {
      socket?.close(1e3);
    } catch {
    }
  }
  /** Another connection in the place of this one, at once. */
  #replace() {
    this.#drop();
    void this.#attempt();
  }
  /** Something about the page changed: it may be looked at again, or has a network again. */
  #look() {
    const { hidden } = this.#world.visibility;
    if (this.#socket && this.phase === "open") {
      if (hidden) this.#after("hidden", HIDDEN_MS, () => this.#sleep());
      else {
        this.#stop("hidden");
        this.#probe();
      }
    } else if (this.phase === "waiting" && this.#mayTry()) {
      void this.#attempt();
    }
  }
  /** A hidden page with nothing to do needs no connection; it comes back when it is looked at. */
  #sleep() {
    if (!this.#owner.isIdle()) return this.#after("hidden", HIDDEN_MS, () => this.#sleep());
    this.#drop();
    this.#enter("waiting");
  }
  /** Asks a socket that may be dead. Any frame is an answer. */
  #probe() {
    if (this.#timers.has("pong")) return;
    this.#after("pong", PONG_MS, () => this.#replace());
    this.send({ type: "ping", t: this.#world.now() });
  }
  /** Looks at the clock now and then: silence for too long, or a clock that jumped, asks the socket. No timer matters while hidden. */
  #watch() {
    const period = this.#heartbeat / 4;
    const expected = this.#world.now() + period;
    this.#after("tick", period, () => {
      const now = this.#world.now();
      const isSilent = now - this.#heardAt > 2.5 * this.#heartbeat;
      if (!this.#world.visibility.hidden && (isSilent || Math.abs(now - expected) > CLOCK_JUMP_MS)) {
        this.#heardAt = now;
        this.#probe();
      }
      this.#watch();
    });
  }
};

// src/environment.ts
function environment(given) {
  const world = globalThis;
  let { storage } = given;
  try {
    if (storage === void 0) storage = world.sessionStorage;
  } catch {
  }
  return {
    WebSocket: given.WebSocket ?? world.WebSocket,
    fetch: given.fetch ?? world.fetch,
    now: given.now ?? Date.now,
    random: given.random ?? Math.random,
    schedule: given.schedule ?? ((callback, ms) => {
      const timer = world.setTimeout(callback, ms);
      return () => world.clearTimeout(timer);
    }),
    storage: storage ?? null,
    visibility: given.visibility ?? pageVisibility(world)
  };
}
function pageVisibility(world) {
  const page = world.document;
  return {
    get hidden() {
      return page?.visibilityState === "hidden";
    },
    get online() {
      return world.navigator?.onLine !== false;
    },
    subscribe(listener) {
      const places = [[page, "visibilitychange"], [world, "pageshow"], [world, "online"], [world, "offline"]];
      for (const [place, type] of places) place?.addEventListener?.(type, listener);
      return () => {
        for (const [place, type] of places) place?.removeEventListener?.(type, listener);
      };
    }
  };
}
function whenAborted(signal, callback) {
  if (signal?.aborted) callback();
  signal?.addEventListener("abort", callback);
}
function listen(listeners, key, listener) {
  const own = (value) => listener(value);
  const others = listeners.get(key) ?? /* @__PURE__ */ new Set();
  listeners.set(key, others.add(own));
  return () => void others.delete(own);
}
function tell(listeners, value) {
  const world = globalThis;
  for (const listener of [...listeners ?? []]) {
    try {
      listener(value);
    } catch (exception) {
      (world.reportError ?? world.console.error)(exception);
    }
  }
}
function remember(map, key, value) {
  map.set(key, value);
  for (const oldest of map.keys()) if (map.size > MAX_REMEMBERED) map.delete(oldest);
  return value;
}

// src/outbox.ts
function add(outbox, entry) {
  if (outbox.some(({ id }) => id === entry.id)) return outbox;
  const next = [...outbox, entry];
  return next.length > MAX_OUTBOX_ENTRIES || JSON.stringify(next).length > MAX_OUTBOX_UNITS ? null : next;
}
function accept(outbox, id) {
  return outbox.map((entry) => entry.id === id ? { ...entry, accepted: true } : entry);
}
function remove(outbox, id) {
  return outbox.filter((entry) => entry.id !== id);
}
function settle(outbox, messages) {
  return outbox.filter(({ id }) => {
    const asked = messages.find((message) => message.role === "user" && message.id === id);
    return !asked || !messages.some(({ role, turn }) => role === "assistant" && turn === asked.turn);
  });
}
function reconcile(outbox, ids, messages) {
  return outbox.map((entry) => ({ ...entry, accepted: ids.includes(entry.id) })).filter(({ id, accepted: accepted2 }) => !accepted2 || messages.some((message) => message.id === id));
}
function parse(stored) {
  if (!Array.isArray(stored)) return [];
  return stored.slice(0, MAX_OUTBOX_ENTRIES).filter((entry) => typeof entry?.id === "string" && entry.content !== void 0);
}

// src/queue.ts
var Queue = class {
  #events = [];
  #end;
  #wake = () => {
  };
  #merge;
  #mayDrop;
  constructor(merge2, mayDrop2) {
    this.#merge = merge2;
    this.#mayDrop = mayDrop2;
  }
  push(event) {
    const events = this.#events;
    this.#add(event);
    if (events.length > MAX_EVENTS) {
      const [, ...rest] = events.splice(Math.max(events.findIndex(this.#mayDrop), 0));
      for (const kept of rest) this.#add(kept);
    }
    this.#wake();
  }
  #add(event) {
    const last = this.#events.pop();
    const merged = last && this.#merge(last, event);
    if (last && !merged) this.#events.push(last);
    this.#events.push(merged ?? event);
  }
  /** No more events follow. What is buffered is still read; then the iteration ends, or throws the error. */
  end(error) {
    this.#end ??= { error };
    this.#wake();
  }
  /** No more events are wanted, not even those that wait. */
  leave() {
    this.#events.length = 0;
    this.end();
  }
  /** The events as they come. `left` is called when the consumer has enough (`break`). */
  read(left) {
    const reader = this.#read();
    const end = reader.return.bind(reader);
    reader.return = () => {
      left();
      this.leave();
      return end();
    };
    return reader;
  }
  async *#read() {
    for (; ; ) {
      const event = this.#events.shift();
      if (event) yield event;
      else if (!this.#end) await new Promise((wake) => this.#wake = wake);
      else if (this.#end.error) throw this.#end.error;
      else return;
    }
  }
};

// src/tools.ts
var Tools = class {
  #tools = /* @__PURE__ */ new Map();
  #runs = /* @__PURE__ */ new Map();
  /** Calls that were begun before a reload. */
  #begun;
  #confirm;
  #changed;
  constructor(begun, confirm, changed) {
    this.#begun = new Set(begun);
    this.#confirm = confirm;
    this.#changed = changed;
  }
  add(name, handler, options) {
    const tool = { handler, options };
    this.#tools.set(name, tool);
    this.#changed();
    return () => {
      if (this.#tools.get(name) === tool) this.#tools.delete(name);
    };
  }
  get declarations() {
    return [...this.#tools].map(([name, { options }]) => ({ name, ...options }));
  }
  /** The calls that must not run again, for the storage. */
  get begun() {
    return [...this.#begun].slice(-MAX_REMEMBERED);
  }
  /** Does what is due on this connection. */
  tend(calls, client, connection, send) {
    for (const call of calls) {
      const tool = this.#tools.get(call.name);
      if (!tool || call.runs !== "client") continue;
      const run = this.#runs.get(call.call) ?? remember(this.#runs, call.call, {});
      let frame;
      if (call.state === "offered") frame = { type: "tool_claim", call: call.call };
      else if (call.state === "claimed" && call.by === client) {
        frame = run.result;
        if (!run.isBegun) void this.#run(call, run, tool);
      }
      if (frame && run.sentOn !== connection) {
        run.sentOn = connection;
        send(frame);
      }
    }
  }
  async #run(call, run, { handler, options }) {
    run.isBegun = true;
    const ranBefore = this.#begun.has(call.call);
    this.#begun.add(call.call);
    this.#changed();
    let [status, content] = ["unknown", void 0];
    try {
      if (!ranBefore || options.idempotent || call.at_most_once === false && await this.#confirm?.(call)) {
        [status, content] = ["ok", await handler(call.arguments, call) ?? null];
      }
    } catch (error) {
      [status, content] = ["error", String(error?.message ?? error)];
    }
    run.result = { type: "tool_result", call: call.call, status, content };
    delete run.sentOn;
    this.#changed();
  }
};

// src/turn.ts
function merge(last, next) {
  if ((last.type === "text" || last.type === "reasoning") && next.type === last.type) return { ...next, text: last.text + next.text };
  return last.type === next.type && next.type === "retry" ? next : null;
}
var mayDrop = (event) => !["text", "rewind", "done"].includes(event.type);
var RunningTurn = class {
  id;
  turn;
  text = "";
  isSettled = false;
  /** A retry is about a later attempt than this one. */
  afterAttempt;
  #queues = /* @__PURE__ */ new Set();
  #cancel;
  #signal;
  /** Settled once: by the turn, or by those who wait for it and leave. */
  #promise;
  #resolve;
  #reject;
  constructor(id, cancel, signal, afterAttempt = 0) {
    this.id = id;
    this.#cancel = cancel;
    this.#signal = signal;
    this.afterAttempt = afterAttempt;
    this.#promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#promise.catch(() => {
    });
    whenAborted(signal, () => this.#reject(signal?.reason));
  }
  get accepted() {
    return this.turn !== void 0;
  }
  cancel() {
    if (!this.isSettled) this.#cancel(this);
  }
  /** Tells what changed since the last look. */
  sync({ text, result, failure }, reason = "resumed") {
    if (this.isSettled) return;
    let same = 0;
    if (text.startsWith(this.text)) same = this.text.length;
    else while (same < text.length && text[same] === this.text[same]) same++;
    if (same < this.text.length) this.tell({ type: "rewind", to: same, removed: this.text.slice(same), reason });
    this.text = text;
    if (text.length > same) this.tell({ type: "text", text: text.slice(same) });
    if (failure) this.fail(failure);
    else if (result) {
      this.isSettled = true;
      this.#resolve(result);
    }
  }
  tell(event) {
    for (const queue of this.#queues) queue.push(event);
  }
  fail(error) {
    this.isSettled = true;
    this.#reject(error);
    return this;
  }
  [Symbol.asyncIterator]() {
    const queue = new Queue(merge, mayDrop);
    this.#queues.add(queue);
    if (this.text) queue.push({ type: "text", text: this.text });
    this.then(
      (result) => {
        queue.push({ type: "done", result });
        queue.end();
      },
      (error) => this.#signal?.aborted ? queue.leave() : queue.end(error)
    );
    return queue.read(() => this.#queues.delete(queue));
  }
  then(good, bad) {
    return this.#promise.then(good, bad);
  }
};

// src/session.ts
var quiet = (turn) => ({ turn, reasoning: "", retry: null, trimmed: 0, tried: 1 });
var FORGET = ":forget";
function createSession(options) {
  return new LiveSession(options);
}
var LiveSession = class {
  state;
  #options;
  #world;
  #connection;
  #client;
  #tools;
  #key;
  #session;
  #resume;
  #transcript = EMPTY;
  #outbox = [];
  /** Where each entry and command was last sent. */
  #sentOn = /* @__PURE__ */ new Map();
  #commands = [];
  #turns = /* @__PURE__ */ new Set();
  #notices = quiet(0);
  #done;
  #error = null;
  /** The number up to which a resumed connection replays; null before the session frame. */
  #target = null;
  #gaps = 0;
  /** The server is to delete the session: it is told so until it has, also after a reload. */
  #isForgetting;
  #listeners = /* @__PURE__ */ new Map();
  #queues = /* @__PURE__ */ new Set();
  constructor(options) {
    this.#options = options;
    this.#world = environment(options);
    this.#client = this.#newId("tab-");
    this.#key = options.storageKey ?? `koboshi:${options.url}`;
    const stored = this.#load();
    this.#session = stored.session ?? options.session;
    this.#resume = stored.resume;
    this.#outbox = parse(stored.outbox);
    this.#tools = new Tools(Array.isArray(stored.begun) ? stored.begun : [], options.confirm, () => this.#changed());
    this.#connection = new Connection(this.#world, options, {
      hello: () => this.#hello(),
      frame: (frame) => this.#frame(frame),
      phase: (phase) => this.#phase(phase),
      warn: (error) => this.#emit({ type: "error", error }),
      closed: (...how) => this.#closed(...how),
      isIdle: () => !this.#transcript.open && !this.#outbox.length && !this.#commands.length
    });
    this.#refresh();
    this.#isForgetting = stored.forget;
    if (stored.forget) this.connect();
    else if (this.#world.storage?.getItem(this.#key + FORGET)) createSession({ ...options, storageKey: this.#key + FORGET });
    whenAborted(options.signal, () => this.close());
  }
  get id() {
    return this.#session;
  }
  connect() {
    if (!this.#options.signal?.aborted) this.#connection.start();
  }
  send(content, { id = this.#newId("c-"), signal, tools = this.#tools.declarations, route = this.#options.route, onBusy = this.#options.onBusy ?? "queue" } = {}) {
    const known = this.#turn(id);
    if (known) return known;
    const turn = new RunningTurn(id, (cancelled) => this.#cancelTurn(cancelled), signal);
    const next = add(this.#outbox, { id, content, route, tools: tools.length ? tools : void 0, onBusy, accepted: false });
    if (!next) return turn.fail(clientError("outbox_full", true, void 0, "turn"));
    this.#outbox = next;
    this.#turns.add(turn);
    this.#error = null;
    this.connect();
    if (this.#connection.phase === "closed") turn.fail(clientError("connection_closed", false));
    this.#changed();
    return turn;
  }
  retry(which) {
    const turn = typeof which === "object" ? which.turn : which ?? this.#answer()?.turn;
    const id = this.#newId("y-");
    const running = new RunningTurn(id, (cancelled) => this.#cancelTurn(cancelled), void 0, this.#answer(turn)?.attempt);
    if (turn === void 0) return running.fail(clientError("invalid_request", false, "no turn to retry", "turn"));
    for (const held of this.#turns) if (held.turn === turn && !held.isSettled) return held;
    running.turn = turn;
    this.#turns.add(running);
    this.#error = null;
    this.#command({ type: "retry", id, turn }, running.afterAttempt);
    return running;
  }
  cancel(which) {
    if (typeof which === "object") return which.cancel();
    const turn = which ?? this.#transcript.open?.turn;
    if (turn !== void 0 && !this.#commands.some(({ frame }) => frame.type === "cancel" && frame.turn === turn)) {
      this.#command({ type: "cancel", id: this.#newId("x-"), turn });
    }
  }
  tool(name, handler, options = {}) {
    return this.#tools.add(name, handler, options);
  }
  trim(keepTurns) {
    this.#command({ type: "trim", id: this.#newId("z-"), keep_turns: keepTurns });
  }
  close() {
    this.#connection.close();
  }
  end({ forget } = {}) {
    const [session, resume] = [this.#session, this.#resume];
    this.#outbox = [];
    this.#forget();
    if (forget && session) {
      [this.#session, this.#resume, this.#isForgetting] = [session, resume, true];
      this.#key += FORGET;
      this.connect();
      return this.#changed();
    }
    this.#connection.send({ type: "bye" });
    this.close();
  }
  subscribe = (listener) => {
    const leave = listen(this.#listeners, "state", listener);
    tell([listener], this.state);
    this.connect();
    return leave;
  };
  on(type, listener) {
    return listen(this.#listeners, type, listener);
  }
  events() {
    const queue = new Queue(() => null, (event) => event.type !== "close");
    this.#queues.add(queue);
    this.connect();
    return queue.read(() => this.#queues.delete(queue));
  }
  // ---- what comes in
  #hello() {
    const { epoch, seq } = this.#transcript;
    const isUsable = epoch !== null && this.#gaps < 2;
    this.#target = null;
    return {
      type: "hello",
      v: 1,
      session: this.#session,
      resume: this.#resume,
      ...isUsable && { epoch, after: seq },
      client: this.#client,
      lang: this.#options.lang ?? globalThis.navigator?.language,
      can: ["rewind", "tools", "reasoning"]
    };
  }
  #frame(frame) {
    const [next, outcome] = reduce(this.#transcript, frame);
    if (outcome === "gap" || isTooLarge(next)) {
      this.#gaps++;
      return this.#connection.resync();
    }
    this.#transcript = next;
    if (outcome === "applied" || frame.seq === void 0) this.#take(frame);
    this.#settle(frame);
    if (outcome === "applied") this.#emit({ type: "frame", frame });
    this.#changed();
  }
  /** What a frame means beyond the transcript. */
  #take(frame) {
    const { open } = this.#transcript;
    switch (frame.type) {
      case "session":
        if (frame.resumed === "lost") return this.#connection.close(clientError("conversation_not_found", false));
        this.#session = frame.session;
        this.#resume = frame.resume ?? this.#resume;
        this.#target = frame.seq;
        return;
      case "snapshot":
        if (this.#transcript.pages) return;
        this.#outbox = reconcile(this.#outbox, frame.ids ?? [], this.#transcript.messages);
        this.#notices = quiet(0);
        return;
      case "accepted":
        this.#outbox = accept(this.#outbox, frame.id);
        this.#finishCommand(frame.id);
        return;
      case "rewind":
        this.#error = null;
        return this.#note(frame.turn, { retry: null, reasoning: "" }, frame.reason !== "retry" && !this.#noticesOf(frame.turn).retry);
      case "reasoning":
        this.#note(frame.turn, { reasoning: this.#notices.reasoning.slice(0, frame.at) + frame.data });
        return this.#tell(frame.turn, { type: "reasoning", text: frame.data });
      case "content":
        return this.#note(frame.turn, { retry: null });
      case "retry": {
        const { type, message, attempt, max_attempts: maxAttempts, delay_ms: delayMs, kind, where } = frame;
        const retry = { message, attempt, maxAttempts, delayMs, kind, where };
        this.#note(frame.turn, { retry: { ...retry, at: this.#world.now() + delayMs } }, where !== "recover");
        return this.#tell(frame.turn, { type, ...retry });
      }
      case "degraded":
        return this.#tell(frame.turn, { type: "degraded", source: frame.source, message: frame.message });
      case "trimmed":
        this.#note(frame.turn, { trimmed: frame.messages });
        return this.#tell(frame.turn, { type: "trimmed", messages: frame.messages });
      case "tool_call":
      case "tool_state": {
        const changed = open?.calls.find(({ call }) => call === frame.call);
        if (changed) this.#tell(frame.turn, { type: "tool", call: changed });
        return;
      }
      case "done":
        this.#done = frame;
        this.#notices = quiet(0);
        return;
      case "error":
        this.#refused(frame);
    }
  }
  /** An error of the server: of a turn, of something that was sent, or of the session. */
  #refused(frame) {
    const { id } = frame;
    const error = serverError(errorOf(frame), frame.turn, this.#noticesOf(frame.turn).tried);
    this.#error = error;
    this.#outbox = remove(this.#outbox, id);
    this.#finishCommand(id);
    this.#turn(id)?.fail(error);
    this.#emit({ type: "error", error });
  }
  /** Brings turns, outbox and commands in line with the transcript. */
  #settle(frame) {
    const { messages, open } = this.#transcript;
    this.#outbox = settle(this.#outbox, messages);
    this.#commands = this.#commands.filter(({ frame: command, afterAttempt }) => {
      if (command.type === "trim") return frame.type !== "trimmed" || frame.reason !== "request";
      const isOpen = open?.turn === command.turn;
      const shown = isOpen ? open : this.#answer(command.turn);
      return !shown || shown.attempt <= afterAttempt || isOpen && command.type === "cancel";
    });
    for (const turn of this.#turns) {
      turn.turn ??= messages.find(({ id, role }) => id === turn.id && role === "user")?.turn;
      const view = this.#view(turn);
      if (view) turn.sync(view, frame.type === "rewind" ? frame.reason : void 0);
      if (turn.isSettled) this.#turns.delete(turn);
    }
    const max = this.#options.maxMessages ?? MAX_MESSAGES;
    if (messages.length > max) this.#transcript = { ...this.#transcript, messages: messages.slice(-max) };
  }
  #turn(id) {
    return [...this.#turns].find((turn) => turn.id === id);
  }
  #answer(turn) {
    return this.#transcript.messages.filter((message) => message.role === "assistant" && message.turn === (turn ?? message.turn)).at(-1);
  }
  #view({ id, turn, afterAttempt }) {
    if (turn === void 0) return null;
    const { open } = this.#transcript;
    if (open?.turn === turn) return open.attempt > afterAttempt ? open : null;
    const answer = this.#answer(turn);
    if (!answer || answer.attempt <= afterAttempt) return null;
    const { id: message, content: text, reason, degraded, error } = answer;
    if (reason === "error") return { text, failure: this.#error?.turn === turn ? this.#error : error ? serverError(error, turn) : clientError("internal", true, void 0, "turn") };
    return { text, result: { id, turn, text, reason, message, degraded, usage: this.#done?.turn === turn ? this.#done.usage : void 0 } };
  }
  // ---- what goes out
  /** Sends what is due on this connection and has not been sent on it. */
  #pump() {
    const { generation } = this.#connection;
    const once = (key, frame) => {
      if (this.#sentOn.get(key) === generation) return;
      remember(this.#sentOn, key, generation);
      this.#connection.send(frame);
    };
    if (this.#isForgetting) return once("bye", { type: "bye", forget: true });
    for (const { id, content, route, tools, onBusy, accepted: accepted2 } of this.#outbox) {
      if (!accepted2) once(id, { type: "chat", id, content, route, tools, on_busy: onBusy });
    }
    for (const { frame } of this.#commands) once(frame.id, frame);
    this.#tools.tend(this.#transcript.open?.calls ?? [], this.#client, generation, (frame) => this.#connection.send(frame));
    for (const turn of this.#turns) if (turn.turn !== void 0 && this.#toCancel.delete(turn)) this.cancel(turn.turn);
  }
  /** Turns that were cancelled before the server gave them a number. */
  #toCancel = /* @__PURE__ */ new Set();
  #cancelTurn(turn) {
    if (turn.turn !== void 0) return this.cancel(turn.turn);
    if (this.#sentOn.has(turn.id)) {
      this.#toCancel.add(turn);
      return;
    }
    this.#outbox = remove(this.#outbox, turn.id);
    turn.sync({ text: "", result: { id: turn.id, turn: 0, text: "", reason: "cancelled", message: "" } });
    this.#turns.delete(turn);
    this.#changed();
  }
  #command(frame, afterAttempt = 0) {
    this.#commands = [...this.#commands, { frame, afterAttempt }].slice(-MAX_OUTBOX_ENTRIES);
    this.connect();
    this.#changed();
  }
  #finishCommand(id) {
    this.#commands = this.#commands.filter(({ frame }) => frame.id !== id || frame.type === "cancel");
  }
  // ---- what others see
  /** Something changed: what is due is sent, the storage and the subscribers follow. A replay is one change. */
  #changed() {
    if (this.#connection.phase === "open") {
      if (this.#target === null || this.#transcript.seq < this.#target || this.#transcript.pages) return;
      this.#gaps = 0;
      this.#pump();
    }
    this.#save();
    this.#refresh();
  }
  #refresh() {
    const { open, messages } = this.#transcript;
    this.state = {
      connection: this.#connection.phase,
      turn: open && { ...this.#noticesOf(open.turn), ...open },
      messages,
      outbox: this.#outbox.filter(({ accepted: accepted2 }) => !accepted2).map(({ id, content }) => ({ id, content })),
      error: this.#error
    };
    tell(this.#listeners.get("state"), this.state);
  }
  #phase(phase) {
    if (phase !== "open") this.#refresh();
    this.#emit({ type: "connection", phase });
  }
  #closed(error, isEnded) {
    const isGone = error?.kind === "conversation_not_found";
    if (this.#isForgetting && isGone) error = null;
    if (isGone || this.#isForgetting && isEnded) this.#forget();
    this.#error = error ?? this.#error;
    const reason = error ?? clientError("connection_closed", false);
    for (const turn of this.#turns) {
      if (error?.kind !== "connection_failed") this.#outbox = remove(this.#outbox, turn.id);
      turn.fail(reason);
    }
    this.#turns.clear();
    this.#toCancel.clear();
    this.#commands = [];
    this.#save();
    this.#refresh();
    if (error) this.#emit({ type: "error", error });
    this.#emit({ type: "close", error });
    for (const queue of this.#queues) queue.end();
    this.#queues.clear();
  }
  #noticesOf(turn) {
    return this.#notices.turn === turn ? this.#notices : quiet(turn);
  }
  #note(turn, change, isNewTry = false) {
    const known = this.#noticesOf(turn);
    this.#notices = { ...known, ...change, tried: known.tried + +isNewTry };
  }
  #tell(turn, event) {
    for (const running of this.#turns) {
      if (running.turn !== turn) continue;
      const view = this.#view(running);
      if (view) running.sync(view);
      running.tell(event);
    }
  }
  #emit(event) {
    for (const queue of this.#queues) queue.push(event);
    tell(this.#listeners.get(event.type), event.type === "error" ? event.error : event);
  }
  // ---- what a reload finds
  #load() {
    try {
      return JSON.parse(this.#world.storage?.getItem(this.#key) ?? "{}") ?? {};
    } catch {
      return {};
    }
  }
  /** Keeps what a reload needs; an entry that says nothing is taken away. */
  #save() {
    const { storage } = this.#world;
    const kept = { session: this.#session, resume: this.#resume, outbox: this.#outbox, begun: this.#tools.begun, forget: this.#isForgetting };
    try {
      if (kept.session || kept.outbox.length) storage?.setItem(this.#key, JSON.stringify(kept));
      else storage?.removeItem(this.#key);
    } catch {
    }
  }
  #forget() {
    this.#session = this.#resume = this.#isForgetting = void 0;
    this.#save();
  }
  #newId(prefix) {
    const digits = () => this.#world.random().toString(36).slice(2);
    return prefix + digits() + digits();
  }
};
function isTooLarge({ open, pages }) {
  return open && (open.text.length > MAX_TEXT_UNITS || open.calls.length > MAX_CALLS) || (pages ?? []).length > MAX_SNAPSHOT_MESSAGES;
}
export {
  createSession
};
