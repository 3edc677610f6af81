/** Is everything on its feet? */
import { useState } from "preact/hooks";
import { TargetActions } from "../actions";
import type { Overview, Target } from "../api";
import { Chart } from "../chart";
import { MAX_ENTRIES, useLive } from "../live";
import { Badge, Countdown, Dialog, Empty, TargetBadge, Why, endOf, isDown } from "../parts";
import { number, rate, time, words } from "../words";
import { FaultRow, FaultSheet } from "./faults";
import type { Entry } from "../api";

interface Verdict {
  tone: "good" | "warn" | "bad";
  title: string;
  why: string;
}

/** The targets of a link of a chain: several keys of a provider are several targets of one name. */
const targetsOf = (targets: Target[], link: string) => targets.filter(({ target }) => target === link);

function verdict(overview: Overview, targets: Target[]): Verdict {
  if (overview.backing === "nothing") return { tone: "bad", title: words.nothing, why: words.nothingWhy };
  const dead = overview.routes.filter(({ chain }) => chain.length > 0 && chain.every((link) => targetsOf(targets, link).length > 0 && targetsOf(targets, link).every(isDown)));
  if (dead.length > 0) return { tone: "bad", title: words.routeDown(dead.map(({ name }) => name).join(", ")), why: words.routeDownWhy };
  const down = targets.filter(isDown).length;
  if (down > 0) return { tone: "warn", title: words.someDown(down, targets.length), why: words.someDownWhy };
  return { tone: "good", title: words.allWell, why: targets.length > 0 ? words.allWellWhy(targets.length) : words.nothingDown };
}

export function Now({ look }: { look: string }) {
  const live = useLive();
  const [open, setOpen] = useState<string | null>(null);
  const [fault, setFault] = useState<Entry | null>(null);
  const { overview, targets } = live;
  if (!overview) return null;
  const found = verdict(overview, targets);
  const last = live.samples.at(-1);
  const { counts } = overview;
  // Of the journal, so of all gateways that share the store; the tiles above it count since the start of this one.
  const midnight = new Date(live.now()).setHours(0, 0, 0, 0);
  const today = live.entries.filter(({ at, what }) => what === "fault" && Date.parse(at) >= midnight).length;
  // The oldest ones of a long day are not in the page.
  const isMore = live.entries.length >= MAX_ENTRIES && Date.parse(live.entries.at(-1)?.at ?? "") >= midnight;
  const lastFaults = live.entries.filter(({ what }) => what === "fault").slice(0, 5);
  const chosen = targets.find(({ key, target }) => (key ?? target) === open);
  const origin = location.origin;
  return (
    <>
      <section class={`verdict ${found.tone}`} aria-live="polite">
        <h1>{found.title}</h1>
        <p>{found.why}</p>
        {overview.backing === "demo" ? <p>{words.demo}</p> : null}
        {overview.backing === "simulated" ? <p>{words.simulated}</p> : null}
        {overview.store_connected ? null : <p class="error">{words.storeAway}</p>}
      </section>
      <dl class="tiles">
        <div>
          <dt>{words.requestsPerSecond}</dt>
          <dd>{last ? rate(last.requests) : "–"}</dd>
          <dd class="dim">{words.rateWhy}</dd>
        </div>
        <div>
          <dt>{words.faultsPerSecond}</dt>
          <dd>{last ? rate(last.faults) : "–"}</dd>
          <dd class="dim">{words.rateWhy}</dd>
        </div>
        <div>
          <dt>{words.survived}</dt>
          <dd id="survived">{number(counts.survived)}</dd>
          <dd class="dim">{words.survivedWhy}</dd>
        </div>
        <div>
          <dt>{words.seen}</dt>
          <dd>{number(counts.failed + counts.broken)}</dd>
          <dd class="dim">{words.seenWhy}</dd>
        </div>
        <div>
          <dt>{words.open}</dt>
          <dd>{number(overview.open)}</dd>
          <dd class="dim">{words.openWhy(overview.connections)}</dd>
        </div>
      </dl>
      <section class="card" aria-labelledby="chart-title">
        <h2 id="chart-title">{words.chart}</h2>
        <Chart samples={live.samples} look={look} />
      </section>
      <section class="card" aria-labelledby="routes-title">
        <h2 id="routes-title">{words.routes}</h2>
        {overview.routes.length === 0 ? (
          <Empty title={words.routesEmpty} code={"routes:\n  assistant: [openai/gpt-4o, anthropic/claude-sonnet-4-5]"} />
        ) : (
          <ul class="routes">
            {overview.routes.map(({ name, chain, simple_model }) => (
              <li key={name}>
                <code class="route-name">{name}</code>
                <ol>
                  {[...chain, ...(simple_model ? [simple_model] : [])].map((link) => {
                    const own = targetsOf(targets, link);
                    const worst = own.find(isDown) ?? own[0];
                    return (
                      <li key={link} class="link">
                        <span class="link-name">{link.replace("{model}", `‹${words.anyModel}›`)}</span>
                        {worst ? <TargetBadge target={worst} /> : <Badge tone="off">{words.notAsked}</Badge>}
                      </li>
                    );
                  })}
                </ol>
              </li>
            ))}
          </ul>
        )}
      </section>
      <section class="card" aria-labelledby="targets-title">
        <h2 id="targets-title">{words.targets}</h2>
        {targets.length === 0 ? (
          <Empty title={words.targetsEmpty} code={`curl ${origin}/v1/chat/completions -H 'content-type: application/json' \\\n  -d '{"model":"sim/ok","messages":[{"role":"user","content":"hello"}]}'`} />
        ) : (
          <ul class="targets">
            {targets.map((target) => {
              const end = endOf(target);
              const down = target.health !== "well";
              return (
                <li key={target.key ?? target.target}>
                  <div class="target-head">
                    <button type="button" class="link-button" onClick={() => setOpen(target.key ?? target.target)}>
                      {target.target}
                    </button>
                    <TargetBadge target={target} />
                    <span class="dim push">{words.attempted(number(target.attempts))}</span>
                  </div>
                  {down ? (
                    <div class="target-why">
                      {end ? <Countdown until={end} /> : null}
                      <Why target={target} />
                      <TargetActions target={target} />
                    </div>
                  ) : null}
                </li>
              );
            })}
          </ul>
        )}
      </section>
      <section class="card" aria-labelledby="faults-title">
        <div class="card-head">
          <h2 id="faults-title">{words.lastFaults}</h2>
          {live.hasJournal ? <span class="dim">{words.today(`${number(today)}${isMore ? "+" : ""}`)}</span> : null}
          <a href="#/faults">{words.allFaults}</a>
        </div>
        {lastFaults.length === 0 ? (
          <Empty title={words.noFaults} why={words.noFaultsWhy} code={`curl ${origin}/v1/chat/completions -H 'content-type: application/json' \\\n  -d '{"model":"sim/fail-503","messages":[{"role":"user","content":"hello"}]}'`} />
        ) : (
          <ul class="plain">
            {lastFaults.map((entry) => (
              <li key={entry.at + entry.text}>
                <button type="button" class="row" onClick={() => setFault(entry)}>
                  <FaultRow entry={entry} />
                </button>
              </li>
            ))}
          </ul>
        )}
      </section>
      {chosen ? <TargetSheet target={chosen} onClose={() => setOpen(null)} /> : null}
      {fault ? <FaultSheet entry={fault} onClose={() => setFault(null)} /> : null}
    </>
  );
}

function TargetSheet({ target, onClose }: { target: Target; onClose: () => void }) {
  const end = endOf(target);
  return (
    <Dialog title={target.target} onClose={onClose} sheet>
      <p>
        <TargetBadge target={target} /> {end ? <Countdown until={end} /> : null}
      </p>
      <Why target={target} />
      <TargetActions target={target} breaker />
      <dl class="facts">
        <dt>{words.key}</dt>
        <dd>
          <code>{target.key ?? target.target}</code>
        </dd>
        <dt>{words.breakerIs}</dt>
        <dd>
          {words.health[target.breaker.mode === "closed" ? "well" : target.breaker.mode] ?? target.breaker.mode}, {words.since} {time(target.breaker.since)}
          {target.breaker.openings > 0 ? ` (${words.openings(target.breaker.openings)})` : ""}
        </dd>
        <dt>{words.attempts}</dt>
        <dd>
          {number(target.attempts)}, {target.gate.in_flight} {words.inFlight}
        </dd>
        {target.rests.map((rest) => (
          <>
            <dt>
              <code>{rest.key}</code>
            </dt>
            <dd>
              {rest.reason}, {rest.until ? <Countdown until={rest.until} /> : words.health["parked"]}
              <br />
              {rest.said}
            </dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}
