/** What is in force, what `koboshi check` says, and what concerns the whole process. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post } from "../api";
import type { Checked, Problem } from "../api";
import { useLive } from "../live";
import { ErrorText, Question } from "../parts";
import { words } from "../words";

/** Every key with its value, in one line each. */
function flat(value: unknown, path: string, into: [string, string][]) {
  if (value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0) {
    for (const [name, inner] of Object.entries(value)) flat(inner, path ? `${path}.${name}` : name, into);
  } else {
    into.push([path, value === null ? words.none : typeof value === "string" ? value : JSON.stringify(value)]);
  }
}

export function ConfigPage() {
  const { overview } = useLive();
  const [config, setConfig] = useState<unknown>(null);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [wanted, setWanted] = useState("");
  const [asked, ask] = useState<"reload" | "drain" | null>(null);
  const [told, tell] = useState<{ outcome: string; why: string | null } | "draining" | null>(null);
  const [error, setError] = useState<unknown>(null);
  const load = () => {
    get<unknown>("config").then(setConfig).catch(setError);
    if (overview?.hosted) get<Checked>("check").then(setChecked).catch(setError);
  };
  useEffect(load, [overview?.started]);
  const keys = useMemo(() => {
    const into: [string, string][] = [];
    if (config) flat(config, "", into);
    return into;
  }, [config]);
  const shown = keys.filter(([key]) => key.toLowerCase().includes(wanted.toLowerCase()));
  const reload = async () => {
    tell(await post<{ outcome: string; why: string | null }>("reload"));
    load();
  };
  const drain = async () => {
    await post("process", { action: "drain" });
    tell("draining");
  };
  return (
    <>
      <div class="card-head">
        <h1>{words.config}</h1>
        {overview?.hosted ? (
          <div class="buttons push">
            <button type="button" class="primary" onClick={() => ask("reload")}>
              {words.reload}…
            </button>
            <button type="button" class="danger" onClick={() => ask("drain")}>
              {words.drain}…
            </button>
          </div>
        ) : null}
      </div>
      <div aria-live="polite">
        {told === "draining" ? <p class="note">{words.draining}</p> : null}
        {told && told !== "draining" ? (
          <div class={told.outcome === "refused" ? "note bad" : "note"}>
            <p>{words.reloaded[told.outcome] ?? told.outcome}</p>
            {told.why ? <pre tabIndex={0}>{told.why}</pre> : null}
          </div>
        ) : null}
      </div>
      <ErrorText error={error} />
      {checked ? (
        <section class="card" aria-labelledby="check-title">
          <h2 id="check-title">{words.check}</h2>
          <p>
            {checked.file ? (
              <>
                <code>{checked.file}</code> — {checked.good ? words.checkGood : words.checkBad(checked.problems.length)}
              </>
            ) : (
              words.checkNoFile
            )}
          </p>
          <Problems all={checked.problems} />
          {checked.warnings.length > 0 ? <h3>{words.warnings}</h3> : null}
          <Problems all={checked.warnings} />
          {checked.good ? (
            <>
              <h3>{words.differs}</h3>
              {checked.differs.length === 0 ? (
                <p class="dim">{words.differsNone}</p>
              ) : (
                <dl class="settings">
                  {checked.differs.map((one) => (
                    <div key={one.key}>
                      <dt>
                        <code>{one.key}</code>
                      </dt>
                      <dd>
                        {one.value} <span class="dim">{one.default && one.default !== words.none ? `(${words.default}: ${one.default})` : ""}</span>
                      </dd>
                    </div>
                  ))}
                </dl>
              )}
            </>
          ) : null}
        </section>
      ) : null}
      <section class="card" aria-labelledby="force-title">
        <h2 id="force-title">{words.inForce}</h2>
        <p class="dim">{words.inForceWhy}</p>
        <label class="find">
          {words.find}
          <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
        </label>
        <dl class="settings">
          {shown.map(([key, value]) => (
            <div key={key}>
              <dt>
                <code>{key}</code>
              </dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </section>
      {asked === "reload" ? <Question title={words.reloadTitle} why={words.reloadWhy} verb={words.reload} onClose={() => ask(null)} act={reload} /> : null}
      {asked === "drain" ? <Question title={words.drainTitle} why={words.drainWhy} verb={words.drain} danger onClose={() => ask(null)} act={drain} /> : null}
    </>
  );
}

function Problems({ all }: { all: Problem[] }) {
  if (all.length === 0) return null;
  return (
    <ul class="problems">
      {all.map((one) => (
        <li key={`${one.line}:${one.column} ${one.message}`}>
          <code>
            {one.line ? `${one.line}:${one.column ?? 1}` : ""} {one.key ?? ""}
          </code>
          <p>{one.message}</p>
          {one.hint ? <p class="dim">{one.hint}</p> : null}
        </li>
      ))}
    </ul>
  );
}
