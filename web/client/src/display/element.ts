/**
 * `<koboshi-error>`: what failed, what was tried, one thing to do, when, a button for it, and a code to quote.
 *
 * It shows one error at one place, next to the turn that failed; the state of the connection is the page's own quiet line. It decides nothing: a press is an event,
 * and the page acts. The countdown runs on a clock that no one can set, from the wait that the server stated; the server's time of day is never used.
 */
import type { KoboshiError } from "../error.js";
import { announce, prepare } from "./announce.js";
import { PHRASES } from "./phrases.js";
import { STYLE } from "./style.js";

/** The error object of apps that answer over HTTP. */
export interface ErrorResponse {
  readonly errorCode: string;
  readonly message: string;
  readonly suggestion?: string | null;
  readonly retryable: boolean;
  readonly retryAfterSeconds?: number | null;
}

export type Shown = KoboshiError | ErrorResponse;
export type Action = "retry" | "trim" | "new";
type Words = Record<Exclude<keyof (typeof PHRASES)["en"], "kinds">, string> & { readonly kinds: Readonly<Record<string, readonly [string, string]>> };
export type Phrases = Partial<Words>;

export interface RetryDetail {
  readonly error: Shown;
  readonly turn: number | undefined;
  /** One press, one id. */
  readonly id: string;
  readonly action: Action;
}

interface Facts {
  readonly message: string;
  readonly suggestion: string;
  readonly code: string;
  readonly action: Action | null;
  readonly afterMs: number;
}

const LONG_MS = 120_000;
const DAY_MS = 86_400_000;
const MAX_AUTO = 3;
const HTML = `<div part=container class=box role=group aria-labelledby=m tabindex=-1><span part=icon class=icon aria-hidden=true><slot name=icon>!</slot></span><div class=body><p part=message class=message id=m><slot name=message></slot></p><p class=tried></p><p part=suggestion class=suggestion><slot name=suggestion></slot></p><div class=row><slot name=actions><button part=retry class=retry type=button></button></slot><span part=countdown class=countdown role=timer></span><button class=stop type=button></button></div><div part=details class=details><slot name=details><span part=code class=code></span><button class=copy type=button></button></slot></div></div><button part=dismiss class=dismiss type=button>×</button></div>`;

// A server that renders pages has no elements.
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;

export class KoboshiErrorElement extends Base {
  static readonly observedAttributes = ["lang", "busy", "auto"];
  /** Makes the live regions; called when the element is defined. */
  static readonly prepare = prepare;
  #error: Shown | null = null;
  #retryAt: number | null = null;
  #tried = 0;
  #phrases: Phrases = {};
  /** How often it tried by itself; a person who stops it leaves none. */
  #autos = 0;
  /** When an automatic try starts. */
  #autoAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wasWaiting = false;
  #cameFrom: Element | null = null;
  readonly #look = () => this.#tick();
  readonly #parts: Record<string, HTMLElement> = {};

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    // A sheet of its own is allowed where a page forbids inline styles.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    root.innerHTML = HTML;
    for (const part of root.querySelectorAll<HTMLElement>("[class]")) this.#parts[part.className] = part;
    this.#at("retry").onclick = () => this.#press();
    this.#at("stop").onclick = () => {
      this.#autos = MAX_AUTO;
      this.#tick();
    };
    this.#at("copy").onclick = () => void this.#copy();
    this.#at("dismiss").onclick = () => this.#dismiss();
  }

  connectedCallback(): void {
    for (const type of ["online", "offline"]) window.addEventListener(type, this.#look);
    document.addEventListener("visibilitychange", this.#look);
    this.#render();
  }

  disconnectedCallback(): void {
    clearTimeout(this.#timer);
    for (const type of ["online", "offline"]) window.removeEventListener(type, this.#look);
    document.removeEventListener("visibilitychange", this.#look);
  }

  attributeChangedCallback(): void {
    this.#render();
  }

  get error(): Shown | null {
    return this.#error;
  }

  set error(error: Shown | null) {
    if (error === this.#error) return;
    if (!this.#error) this.#cameFrom = document.activeElement;
    this.#error = error;
    this.#retryAt = null;
    const facts = this.#facts();
    if (facts?.afterMs) this.#retryAt = performance.now() + facts.afterMs;
    // Clients that failed together do not come back together.
    this.#autoAt = (this.#retryAt ?? performance.now()) + (1 + Math.random()) * Math.max(500, (facts?.afterMs ?? 0) / 10);
    this.#wasWaiting = this.#rest() > 0;
    // Not before it is known when the next try starts: this looks whether one is due.
    this.busy = false;
    this.#render();
    // One announcement per episode: a try that this display made by itself and that failed alike is no news, unless it was the last.
    if (facts && !(this.#autos && this.#isAutomatic())) announce([facts.message, facts.suggestion, this.#waitText()].join(" "), "scope" in error! && error.scope !== "turn" ? "polite" : "assertive", this.#lang());
  }

  /** When the next try is worth it, on the clock of `performance.now()`. */
  get retryAt(): number | null {
    return this.#retryAt;
  }

  set retryAt(at: number | null) {
    this.#retryAt = at;
    this.#wasWaiting = this.#rest() > 0;
    this.#tick();
  }

  /** How often it was tried before it failed, where the error does not say. */
  get tried(): number {
    return this.#tried;
  }

  set tried(count: number) {
    this.#tried = count;
    this.#render();
  }

  get phrases(): Phrases {
    return this.#phrases;
  }

  set phrases(phrases: Phrases) {
    this.#phrases = phrases;
    this.#render();
  }

  declare busy: boolean;
  declare auto: boolean;
  declare compact: boolean;
  declare tone: "error" | "warning" | "info";

  show(error: Shown): void {
    this.error = error;
  }

  clear(): void {
    this.#autos = 0;
    const hadFocus = this.shadowRoot?.activeElement != null;
    this.error = null;
    if (hadFocus && this.#cameFrom instanceof HTMLElement) this.#cameFrom.focus();
  }

  override focus(options?: FocusOptions): void {
    const retry = this.#at("retry");
    (retry.hidden ? this.#at("box") : retry).focus(options);
  }

  #at(name: string): HTMLElement {
    return this.#parts[name]!;
  }

  #lang(): string {
    return this.lang || this.closest<HTMLElement>("[lang]")?.lang || document.documentElement.lang || navigator.language;
  }

  #words(): Words {
    return { ...(/^ja\b/i.test(this.#lang()) ? PHRASES.ja : PHRASES.en), ...this.#phrases };
  }

  #facts(): Facts | null {
    const error = this.#error;
    if (!error) return null;
    const { kinds } = this.#words();
    const isOwn = "origin" in error && error.origin === "client";
    const own = isOwn ? (kinds[error.kind] ?? kinds.internal) : undefined;
    const code = "errorCode" in error ? error.errorCode : error.kbs;
    const later = "errorCode" in error ? error.retryable : (error.retry?.later ?? false);
    const action: Action | null = code.endsWith("-4002") ? "trim" : code.endsWith("-9002") ? "new" : later ? "retry" : null;
    return {
      message: own?.[0] ?? (error.message || kinds.internal![0]),
      suggestion: own?.[1] ?? error.suggestion ?? "",
      code: [code, "detail" in error ? error.detail : ""].filter(Boolean).join(" · "),
      action,
      afterMs: action !== "retry" ? 0 : "errorCode" in error ? (error.retryAfterSeconds ?? 0) * 1_000 : (error.retry?.afterMs ?? 0),
    };
  }

  #rest(): number {
    return Math.max(0, (this.#retryAt ?? 0) - performance.now());
  }

  #render(): void {
    const facts = this.#facts();
    this.hidden = !facts;
    if (!facts) return this.#tick();
    const words = this.#words();
    const retry = this.#at("retry");
    const hadFocus = this.shadowRoot?.activeElement === retry;
    const put = (name: string, text: string) => {
      const place = this.#at(name);
      (place.querySelector("slot") ?? place).textContent = text;
      place.hidden = !text && !this.querySelector(`[slot=${name}]`);
    };
    put("message", facts.message);
    const tried = this.#tried || (this.#error as KoboshiError).tried || 0;
    put("tried", tried > 1 ? fill(words.tried, { count: `${tried}` }) : "");
    put("suggestion", facts.suggestion);
    put("code", facts.code);
    put("copy", facts.code && words.copy);
    put("stop", words.stop);
    this.#at("row").hidden = retry.hidden = !facts.action;
    retry.textContent = this.busy ? words.retrying : facts.action ? words[facts.action] : "";
    this.#at("dismiss").setAttribute("aria-label", words.dismiss);
    // The focus goes nowhere by itself.
    if (hadFocus && retry.hidden) this.#at("box").focus();
    this.#tick();
  }

  #isAutomatic(): boolean {
    return this.auto && !this.busy && this.#autos < MAX_AUTO && this.#facts()?.action === "retry";
  }

  #waitText(): string {
    const words = this.#words();
    const lang = this.#lang();
    if (!this.#facts()?.action) return "";
    if (!navigator.onLine) return words.offline;
    const isAuto = this.#isAutomatic();
    const rest = isAuto ? this.#autoAt - performance.now() : this.#rest();
    if (this.busy || rest <= 0) return "";
    if (rest <= LONG_MS) {
      const seconds = new Intl.NumberFormat(lang, { style: "unit", unit: "second", unitDisplay: "long" }).format(Math.ceil(rest / 1_000));
      return fill(isAuto ? words.auto : words.wait, { time: seconds });
    }
    const date: Intl.DateTimeFormatOptions = rest > DAY_MS / 2 ? { month: "long", day: "numeric" } : {};
    return fill(words.wait_until, { time: new Intl.DateTimeFormat(lang, { ...date, hour: "numeric", minute: "2-digit" }).format(Date.now() + rest) });
  }

  /** Shows the rest of the wait, and looks again when it will have changed. */
  #tick(): void {
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
    if (rest > 0) this.#timer = setTimeout(this.#look, rest > LONG_MS ? 30_000 : rest % 1_000 || 1_000);
    else if (isAuto && navigator.onLine) {
      this.#autos++;
      this.#ask();
    }
  }

  #press(): void {
    if (this.busy) return;
    const wait = this.#waitText();
    // A button that waits keeps the focus and says how long.
    if (this.#rest() > 0 || !navigator.onLine) return announce(wait, "polite", this.#lang());
    this.#ask();
  }

  #ask(): void {
    const action = this.#facts()?.action;
    if (!action || !this.#error) return;
    const detail: RetryDetail = { error: this.#error, turn: "turn" in this.#error ? this.#error.turn : undefined, id: `y-${Math.random().toString(36).slice(2)}`, action };
    if (this.#fire("retry", detail)) this.busy = true;
  }

  /** Whether the page let the event have its effect. */
  #fire(name: string, detail: object): boolean {
    return this.dispatchEvent(new CustomEvent(`koboshi-${name}`, { detail, bubbles: true, composed: true, cancelable: true }));
  }

  async #copy(): Promise<void> {
    const text = this.#facts()?.code ?? "";
    this.#fire("copy", { text });
    try {
      await navigator.clipboard.writeText(text);
      this.#at("copy").textContent = this.#words().copied;
      announce(this.#words().copied, "polite", this.#lang());
    } catch {
      // Without the right to the clipboard the code can still be read and selected.
    }
  }

  #dismiss(): void {
    this.#fire("dismiss", { error: this.#error });
    this.clear();
  }
}

for (const name of ["busy", "auto", "compact"]) {
  Object.defineProperty(KoboshiErrorElement.prototype, name, {
    get(this: HTMLElement) {
      return this.hasAttribute(name);
    },
    set(this: HTMLElement, isOn: boolean) {
      this.toggleAttribute(name, isOn);
    },
  });
}
Object.defineProperty(KoboshiErrorElement.prototype, "tone", {
  get(this: HTMLElement) {
    return this.getAttribute("tone") ?? "error";
  },
  set(this: HTMLElement, tone: string) {
    this.setAttribute("tone", tone);
  },
});

function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "");
}
