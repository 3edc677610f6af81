/** The journal as it happens, and what is behind a fault. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ResumeQuestion, TargetActions } from "../actions";
import type { Entry } from "../api";
import { KINDS } from "../kinds";
import { live, same, useEvery, useLive } from "../live";
import { Badge, Dialog, Empty, Rows } from "../parts";
import { advice, number, span, time, words } from "../words";

const text = (entry: Entry, name: string): string => {
  const value = entry.data?.[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
};

export const codeOf = (kind: string) => (KINDS[kind] ? `${live.overview?.code_prefix ?? "KBS"}-${KINDS[kind][0]}` : "");

function toneOf(entry: Entry): "good" | "warn" | "bad" | "off" {
  if (entry.what === "fault") return text(entry, "remedy") === "stop" ? "bad" : "warn";
  if (entry.kind === "rescued" || entry.kind === "recovered" || entry.kind === "succeeded") return "good";
  return "off";
}

/** One row: when, what, where, what was done. */
export function FaultRow({ entry }: { entry: Entry }) {
  const remedy = text(entry, "remedy");
  return (
    <>
      <time dateTime={entry.at}>{time(entry.at, live.now())}</time>
      <Badge tone={toneOf(entry)}>{entry.kind ?? entry.what}</Badge>
      <span class="row-text">{entry.text}</span>
      <span class="row-remedy dim">{words.remedy[remedy] ?? ""}</span>
    </>
  );
}

interface Filter {
  all: boolean;
  kind: string;
  target: string;
  key: string;
  route: string;
  agent: string;
}

const NO_FILTER: Filter = { all: false, kind: "", target: "", key: "", route: "", agent: "" };

function fits(entry: Entry, filter: Filter): boolean {
  const has = (value: string, wanted: string) => wanted === "" || value.toLowerCase().includes(wanted.toLowerCase());
  return (filter.all || entry.what === "fault") && (filter.kind === "" || entry.kind === filter.kind) && has(text(entry, "target") || entry.text, filter.target) && has(entry.key ?? "", filter.key) && has(text(entry, "route"), filter.route) && has(entry.agent ?? "", filter.agent);
}

export function Faults() {
  const { entries, hasJournal } = useLive();
  const [filter, set] = useState(NO_FILTER);
  const [open, setOpen] = useState<Entry | null>(null);
  const [narrow, setNarrow] = useState(() => matchMedia("(max-width: 700px)").matches);
  useEffect(() => {
    const query = matchMedia("(max-width: 700px)");
    const change = () => setNarrow(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  // Other processes that share the store do not come by the feed.
  useEvery(15_000, () => void live.refreshJournal());
  const shown = useMemo(() => entries.filter((entry) => fits(entry, filter)), [entries, filter]);
  const kinds = useMemo(() => [...new Set(entries.filter((entry) => filter.all || entry.what === "fault").map(({ kind }) => kind ?? ""))].filter(Boolean).sort(), [entries, filter.all]);
  const field = (name: "target" | "key" | "route" | "agent", label: string, hint: string) => (
    <label>
      {label}
      <input type="search" value={filter[name]} placeholder={hint} onInput={(event) => set({ ...filter, [name]: event.currentTarget.value })} autocomplete="off" spellcheck={false} />
    </label>
  );
  const isFiltered = filter.kind !== "" || filter.target !== "" || filter.key !== "" || filter.route !== "" || filter.agent !== "";
  return (
    <div class="page-faults">
      <div class="card-head">
        <h1>{words.faults}</h1>
        <span class="dim" role="status">
          {words.rows(number(shown.length))}
        </span>
      </div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          {words.what}
          <select value={filter.all ? "all" : "faults"} onChange={(event) => set({ ...filter, all: event.currentTarget.value === "all", kind: "" })}>
            <option value="faults">{words.whatFaults}</option>
            <option value="all">{words.whatAll}</option>
          </select>
        </label>
        <label>
          {words.kind}
          <select value={filter.kind} onChange={(event) => set({ ...filter, kind: event.currentTarget.value })}>
            <option value="">{words.any}</option>
            {kinds.map((kind) => (
              <option key={kind}>{kind}</option>
            ))}
          </select>
        </label>
        {field("target", words.filterTarget, "openai/gpt-4o")}
        {field("key", words.key, "account:openai")}
        {field("route", words.route, "assistant")}
        {field("agent", words.agent, "reviewer/website")}
      </form>
      {shown.length > 0 ? (
        <Rows items={shown} height={narrow ? 72 : 44} keyOf={same} label={words.faults} row={(entry) => <FaultRow entry={entry} />} onOpen={setOpen} />
      ) : !hasJournal ? (
        <p class="dim">{words.reading}</p>
      ) : isFiltered ? (
        <div class="empty">
          <p class="empty-title">{words.noMatch}</p>
          <button type="button" onClick={() => set({ ...NO_FILTER, all: filter.all })}>
            {words.clearFilters}
          </button>
        </div>
      ) : (
        <Empty title={words.noFaults} why={words.noFaultsWhy} code={`curl ${location.origin}/v1/chat/completions -H 'content-type: application/json' \\\n  -d '{"model":"sim/fail-503","messages":[{"role":"user","content":"hello"}]}'`} />
      )}
      {open ? <FaultSheet entry={open} onClose={() => setOpen(null)} /> : null}
    </div>
  );
}

/** What the client got, as far as the journal tells. */
function outcome(story: Entry[], entry: Entry): string {
  if (entry.node.includes("supervisor") || entry.data?.["exit_code"] !== undefined) return words.gotAgent;
  if (story.some(({ kind }) => kind === "rescued")) return words.gotWhole;
  if (story.some(({ kind }) => kind === "degrade")) return words.gotLesser;
  const last = story.filter(({ what }) => what === "fault").at(-1);
  return last && text(last, "remedy") === "stop" ? words.gotError : words.gotOpen;
}

/** A fault, in plain words. */
export function FaultSheet({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const { entries, targets } = useLive();
  const [resuming, setResuming] = useState(false);
  const request = text(entry, "request");
  const story = useMemo(() => (request ? entries.filter((one) => text(one, "request") === request).reverse() : [entry]), [entries, request]);
  const kind = entry.kind ?? entry.what;
  const [message, suggestion] = advice(kind, entry.data?.["sub"]);
  const origin = text(entry, "origin") || (KINDS[kind]?.[1] ?? "");
  const target = targets.find(({ key, target }) => (entry.key !== null && key === entry.key) || target === text(entry, "target"));
  const began = story.map((one) => (text(one, "after_ms") ? Date.parse(one.at) - Number(text(one, "after_ms")) : Number.NaN)).find((at) => !Number.isNaN(at));
  const title = entry.what === "fault" ? `${kind} ${codeOf(kind)}` : kind;
  return (
    <Dialog title={title} onClose={onClose} sheet>
      <dl class="facts story">
        <dt>{words.whatFailed}</dt>
        <dd>
          {message ? <p>{message}</p> : null}
          <p class="dim">
            {time(entry.at, live.now())} · {text(entry, "target") || entry.key || entry.node}
            {text(entry, "route") ? ` · ${words.route} ${text(entry, "route")}` : ""}
            {entry.agent ? ` · ${words.agent} ${entry.agent}` : ""}
          </p>
        </dd>
        {origin ? (
          <>
            <dt>{words.whoseFault}</dt>
            <dd>{words.origin[origin] ?? origin}</dd>
          </>
        ) : null}
        {request ? (
          <>
            <dt>{words.tried}</dt>
            <dd>
              <ol class="timeline">
                {began !== undefined ? (
                  <li>
                    <time>{time(began, live.now())}</time> {words.began}
                  </li>
                ) : null}
                {story.map((one) => (
                  <li key={one.at + one.text} class={one === entry || (one.at === entry.at && one.text === entry.text) ? "here" : ""}>
                    <time>{began !== undefined ? `+${span2(Date.parse(one.at) - began)}` : time(one.at, live.now())}</time> <Badge tone={toneOf(one)}>{one.kind ?? one.what}</Badge> {text(one, "target")}
                    {text(one, "remedy") ? <span class="dim"> → {words.remedy[text(one, "remedy")]}</span> : null}
                  </li>
                ))}
              </ol>
            </dd>
          </>
        ) : null}
        {entry.what === "fault" ? (
          <>
            <dt>{words.clientGot}</dt>
            <dd>{outcome(story, entry)}</dd>
          </>
        ) : null}
        <dt>{words.decided}</dt>
        <dd>
          {text(entry, "rule") ? (
            <p>
              {words.rule} <code>{text(entry, "rule")}</code>
              {text(entry, "status") ? ` · ${words.status} ${text(entry, "status")}` : ""}
            </p>
          ) : null}
          <blockquote>{text(entry, "line") || entry.text}</blockquote>
        </dd>
        {suggestion ? (
          <>
            <dt>{words.whatToDo}</dt>
            <dd>
              <p>{suggestion}</p>
              {target ? <TargetActions target={target} breaker /> : null}
              {!target && entry.key && entry.agent ? (
                <button type="button" class="primary" onClick={() => setResuming(true)}>
                  {words.resume}
                </button>
              ) : null}
            </dd>
          </>
        ) : null}
        {request ? (
          <>
            <dt>{words.request}</dt>
            <dd>
              <code>{request}</code>
            </dd>
          </>
        ) : null}
      </dl>
      {resuming && entry.key ? <ResumeQuestion name={entry.agent ?? entry.key} keys={[entry.key]} force onClose={() => setResuming(false)} /> : null}
    </Dialog>
  );
}

const span2 = (ms: number) => (ms < 10_000 ? `${Math.max(0, Math.round(ms))} ms` : span(ms));
