/** The admin API, as the page uses it: what it answers, and the token that every change carries. */

export type Health = "well" | "probing" | "open" | "cooling" | "parked" | "held" | "absent" | "forced_open" | "forced_closed" | "disabled";

export interface Rest {
  key: string;
  state: string;
  reason: string;
  since: string;
  until: string | null;
  consecutive: number;
  said: string;
}

export interface Target {
  target: string;
  key: string | null;
  provider: string;
  model: string;
  health: Health;
  why: string | null;
  attempts: number;
  breaker: { mode: string; since: string; until: string | null; openings: number };
  rests: Rest[];
  gate: { held_by: string | null; opens_in: number | null; in_flight: number; waiting: number };
}

export interface Overview {
  node: string;
  version: string;
  address: string;
  now: string;
  started: string;
  backing: "providers" | "demo" | "simulated" | "nothing";
  hosted: boolean;
  keeps_agents: boolean;
  code_prefix: string;
  open: number;
  connections: number;
  session_connections: number;
  store_connected: boolean;
  counts: { faults: number; survived: number; whole: number; cached: number; degraded: number; refused: number; failed: number; broken: number };
  routes: { name: string; chain: string[]; simple_model: string | null }[];
}

export interface Entry {
  at: string;
  node: string;
  what: string;
  kind: string | null;
  key: string | null;
  agent: string | null;
  text: string;
  data: Record<string, unknown> | null;
}

export interface Visitor {
  signed_in: boolean;
  can_sign_in: boolean;
  can_sign_out: boolean;
  csrf: string | null;
}

export interface Agent {
  agent: string;
  state: string;
  held_by: string | null;
  started: string | null;
  account: string | null;
  pid: number | null;
  last: Record<string, unknown> | null;
}

export interface Problem {
  file: string;
  line: number | null;
  column: number | null;
  key: string | null;
  message: string;
  hint: string | null;
}

export interface Checked {
  file: string | null;
  good: boolean;
  problems: Problem[];
  warnings: Problem[];
  differs: { key: string; value: string; default: string }[];
}

/** What is out of use, as `koboshi status` shows it. */
export interface StatusRow {
  key: string;
  state: string;
  until: string | null;
  detail: string;
}

export interface Gateway {
  node: string;
  address: string;
  version: string;
  started: string;
  at: string;
  stopped: boolean;
  config?: string | null;
}

/** A supervisor, as it reported to the store. */
export interface Supervisor {
  node: string;
  version: string;
  started: string;
  at: string;
  stopped: boolean;
  agents: number;
  running: number;
  config: string;
}

export interface SpendRow {
  name: string;
  attempts: number;
  input_tokens: number;
  output_tokens: number;
  cost: number;
  unpriced_tokens: number;
  estimated_attempts: number;
  lost_attempts: number;
  lost_cost: number;
  lesser_cost: number;
}

export interface Budget {
  key: string;
  period: string;
  limit: number;
  spent: number;
  share: number;
  renews_at: string;
}

/** What answers cost, as `koboshi spend` has it. */
export interface SpendReport {
  by: "key" | "model" | "route" | "agent" | "day";
  from: string;
  to: string;
  zone: string;
  currency: string;
  rows: SpendRow[];
  total: SpendRow;
  budgets: Budget[];
}

/** An answer that is an error, in the words of the gateway. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly suggestion: string,
  ) {
    super(message);
  }
}

let csrf: string | null = null;
let lang = "en";

export function setLanguage(to: string) {
  lang = to;
}

async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
  const headers: Record<string, string> = { "accept-language": lang };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (csrf !== null && method !== "GET") headers["x-koboshi-csrf"] = csrf;
  const answer = await fetch(path, { method, headers, credentials: "same-origin", cache: "no-store", body: body === undefined ? null : JSON.stringify(body) });
  const said = (await answer.json().catch(() => null)) as { error?: { message?: string; koboshi?: { suggestion?: string } } } | null;
  if (!answer.ok) throw new ApiError(answer.status, said?.error?.message ?? `HTTP ${answer.status}`, said?.error?.koboshi?.suggestion ?? "");
  return said;
}

export const get = <T>(path: string) => ask("GET", path) as Promise<T>;
export const post = <T>(path: string, body: unknown = {}) => ask("POST", path, body) as Promise<T>;

/** Who looks; it also brings the token of changes. */
export async function visitor(): Promise<Visitor> {
  const found = await get<Visitor>("session");
  csrf = found.csrf;
  return found;
}

export async function signIn(key: string): Promise<Visitor> {
  const found = await post<Visitor>("session", { key });
  csrf = found.csrf;
  return found;
}

export async function signOut() {
  await post("session", {});
  csrf = null;
}
