/** The agents: what runs, why the last run ended, until when it rests, what it writes. */
import { useEffect, useRef, useState } from "preact/hooks";
import { CoolQuestion, ResumeQuestion } from "../actions";
import { get, post } from "../api";
import type { Agent, Entry } from "../api";
import { isRunning, live, useEvery, useLive, useNow } from "../live";
import { Badge, Countdown, Dialog, Empty, Question, TONE } from "../parts";
import { advice, span, time, words } from "../words";
import { FaultRow, FaultSheet } from "./faults";

const CONFIG = "agents:\n  reviewer:\n    command: [claude, -p, \"review the open pull requests\"]\n    projects: [website]\n    when: {schedule: every 1h}";

type Asked = { what: "start" | "stop" | "pause"; agent: string } | { what: "resume"; agent: string; key: string } | null;

/** The ends of an agent's runs, newest first. */
const runsOf = (entries: Entry[], agent: string) => entries.filter((entry) => entry.agent === agent && entry.data?.["exit_code"] !== undefined);

export function Agents() {
  const { agents, entries, supervisors } = useLive();
  const [asked, ask] = useState<Asked>(null);
  const [open, setOpen] = useState<string | null>(null);
  useEvery(2_000, () => {
    void live.readAgents();
    void live.readStatus();
  });
  useEvery(10_000, () => void live.refreshJournal());
  // A run that begins or ends is in the journal of the supervisor, which the feed of the gateway does not have.
  const states = agents?.agents.map(({ agent, state, started }) => `${agent} ${state} ${started}`).join();
  useEffect(() => void live.refreshJournal(), [states]);
  if (!agents) return <h1>{words.agents}</h1>;
  const known = agents.agents.length > 0 ? agents.agents : [...new Set(entries.map(({ agent }) => agent ?? "").filter((agent) => agent.includes("/")))].map((agent): Agent => ({ agent, state: "", held_by: null, started: null, account: null, pid: null, last: null }));
  const close = () => {
    ask(null);
    void live.readAgents();
  };
  return (
    <>
      <h1>{words.agents}</h1>
      {!agents.supervisor && known.length > 0 ? <p class="note">{supervisors.some((one) => isRunning(one, live.now())) ? words.agentsElsewhere : words.agentsOnly}</p> : null}
      {known.length === 0 ? (
        <section class="card">
          <Empty title={words.agentsEmpty} why={words.agentsEmptyWhy} code={CONFIG} />
        </section>
      ) : (
        <ul class="agents">
          {known.map((agent) => (
            <AgentCard key={agent.agent} agent={agent} runs={runsOf(entries, agent.agent)} supervised={agents.supervisor} ask={ask} open={() => setOpen(agent.agent)} />
          ))}
        </ul>
      )}
      {open ? <OutputSheet agent={open} onClose={() => setOpen(null)} /> : null}
      {asked?.what === "stop" ? <Question title={words.stopTitle(asked.agent)} why={words.stopWhy} verb={words.stop} danger onClose={close} act={() => post("agents", { agent: asked.agent, action: "stop" })} /> : null}
      {asked?.what === "start" ? <Question title={words.startTitle(asked.agent)} why={words.startWhy} verb={words.start} onClose={close} act={() => post("agents", { agent: asked.agent, action: "start" })} /> : null}
      {asked?.what === "pause" ? <CoolQuestion name={asked.agent} keyName={`agent:${asked.agent}`} force title={words.pauseTitle(asked.agent)} why={words.pauseWhy} verb={words.pause} onClose={close} /> : null}
      {asked?.what === "resume" ? <ResumeQuestion name={asked.key === `agent:${asked.agent}` ? asked.agent : asked.key} keys={[asked.key]} force onClose={close} /> : null}
    </>
  );
}

function AgentCard({ agent, runs, supervised, ask, open }: { agent: Agent; runs: Entry[]; supervised: boolean; ask: (asked: Asked) => void; open: () => void }) {
  const now = useNow();
  const [shown, show] = useState<Entry | null>(null);
  const tone = agent.state === "held" ? "warn" : agent.state === "parked" ? "bad" : (TONE[agent.state] ?? "off");
  const last = runs[0];
  const [message] = last?.what === "fault" ? advice(last.kind ?? "", last.data?.["sub"]) : [""];
  const held = live.rows.find(({ key }) => key === agent.held_by);
  return (
    <li class="card">
      <div class="card-head">
        <h2>{agent.agent}</h2>
        {agent.state ? <Badge tone={tone}>{words.agentState[agent.state] ?? agent.state}</Badge> : null}
        {agent.started && agent.state === "running" ? <span class="dim">{words.runningSince(span(now - Date.parse(agent.started)))}</span> : null}
      </div>
      {agent.held_by ? (
        <div class="target-why">
          {held?.until ? <Countdown until={held.until} /> : null}
          <p>{held?.detail || words.heldBy(agent.held_by)}</p>
        </div>
      ) : null}
      <h3>{words.runs}</h3>
      {runs.length === 0 ? <p class="dim">{words.runsEmpty}</p> : <RunLine runs={runs} show={show} />}
      {last ? (
        <>
          <h3>{words.lastEnd}</h3>
          <button type="button" class="row" onClick={() => show(last)}>
            <FaultRow entry={last} />
          </button>
          {message ? <p class="dim">{message}</p> : null}
        </>
      ) : null}
      <div class="buttons">
        {supervised && !["running", "held", "parked"].includes(agent.state) ? (
          <button type="button" class="primary" onClick={() => ask({ what: "start", agent: agent.agent })}>
            {words.start}…
          </button>
        ) : null}
        {supervised && agent.state !== "stopped" ? (
          <button type="button" onClick={() => ask({ what: "stop", agent: agent.agent })}>
            {words.stop}…
          </button>
        ) : null}
        <button type="button" onClick={() => ask({ what: "pause", agent: agent.agent })}>
          {words.pause}…
        </button>
        <button type="button" class={agent.state === "held" || agent.state === "parked" ? "primary" : ""} onClick={() => ask({ what: "resume", agent: agent.agent, key: held?.key ?? `agent:${agent.agent}` })}>
          {words.resume}…
        </button>
        <button type="button" onClick={open}>
          {words.output}
        </button>
      </div>
      {shown ? <FaultSheet entry={shown} onClose={() => show(null)} /> : null}
    </li>
  );
}

/** The last runs as bars on a time line: where each began and ended. */
function RunLine({ runs, show }: { runs: Entry[]; show: (run: Entry) => void }) {
  const all = runs.slice(0, 40).map((run) => {
    const end = Date.parse(run.at);
    return { run, end, from: end - Number(run.data?.["ran"] ?? 0) * 1000 };
  });
  const first = Math.min(...all.map(({ from }) => from));
  const whole = Math.max(1, live.now() - first);
  return (
    <>
      <ul class="runline">
        {all.map(({ run, end, from }) => (
          <li key={run.at} style={{ left: `${((from - first) / whole) * 100}%`, width: `max(10px, ${((end - from) / whole) * 100}%)` }}>
            <button type="button" class={run.what === "fault" ? "bad" : run.kind === "succeeded" ? "good" : "off"} onClick={() => show(run)} aria-label={`${time(end, live.now())}: ${words.end[run.kind ?? ""] ?? run.kind}, ${span(end - from)}`} title={`${time(end, live.now())} ${run.kind} ${span(end - from)}`} />
          </li>
        ))}
      </ul>
      <p class="runline-ends dim">
        <span>{time(first, live.now())}</span>
        <span>{time(live.now(), live.now())}</span>
      </p>
    </>
  );
}

/** More of an output is not shown. */
const MAX_LINES = 2_000;

interface LogPiece {
  run: string;
  text: string;
  next: string | null;
  more: boolean;
  ended: boolean;
}

/** What was written since the last look; all of it where a newer run has begun. */
async function readOn(agent: string, last: { run: string; next: string | null } | null) {
  const piece = (run: string, from: string | null) =>
    get<LogPiece>(`logs?${new URLSearchParams({ agent, run, ...(from ? { from } : {}) })}`);
  let read = last ? await piece(last.run, last.next) : await piece("1", null);
  let isNew = !last;
  if (last && read.ended && !read.more) {
    const newest = await piece("1", null);
    if (newest.run !== last.run) [read, isNew] = [newest, true];
  }
  const run = read.run;
  const text = read.text.split("\n");
  while (read.more) {
    read = await piece(run, read.next);
    text.push(...read.text.split("\n"));
    text.splice(0, text.length - MAX_LINES);
  }
  return { at: { run, next: read.next ?? (isNew ? null : (last?.next ?? null)) }, text: text.filter((line, at) => line || at < text.length - 1), isNew };
}

function OutputSheet({ agent, onClose }: { agent: string; onClose: () => void }) {
  const [lines, setLines] = useState<string[] | null>(null);
  const box = useRef<HTMLPreElement>(null);
  const place = useRef<{ run: string; next: string | null } | null>(null);
  const isReading = useRef(false);
  useEvery(2_000, () => {
    if (isReading.current) return;
    isReading.current = true;
    readOn(agent, place.current)
      .then(({ at, text, isNew }) => {
        place.current = at;
        setLines((before) => [...(isNew ? [] : (before ?? [])), ...text].slice(-MAX_LINES));
      })
      .catch(() => setLines((before) => before ?? []))
      .finally(() => (isReading.current = false));
  });
  useEffect(() => {
    const element = box.current;
    // A reader who has scrolled up stays there.
    if (element && element.scrollHeight - element.scrollTop - element.clientHeight < 200) element.scrollTop = element.scrollHeight;
  }, [lines]);
  return (
    <Dialog title={`${agent} · ${words.output}`} onClose={onClose} sheet>
      {lines?.length === 0 ? <p class="dim">{words.outputEmpty}</p> : null}
      <pre class="output" ref={box} tabIndex={0}>
        {lines?.join("\n")}
      </pre>
    </Dialog>
  );
}
