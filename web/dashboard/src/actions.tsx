/** What an operator may do with a target or a key: each with its question. */
import { useState } from "preact/hooks";
import { post } from "./api";
import type { Target } from "./api";
import { Question, RestFields, restUntil } from "./parts";
import { words } from "./words";

export type Asked = "cool" | "resume" | "breaker" | null;

/** Cools a key, whatever has it. */
export function CoolQuestion({ name, keyName, force, title, why, verb, onClose }: { name: string; keyName: string; force?: boolean; title?: string; why?: string; verb?: string; onClose: () => void }) {
  const act = (form: FormData) => post("cooldowns", { key: keyName, action: "cool", until: restUntil(form), reason: String(form.get("reason") ?? "") || null, force: force ?? false });
  return (
    <Question title={title ?? words.coolTitle(name)} why={why ?? words.coolWhy} verb={verb ?? words.cool} onClose={onClose} act={act} danger>
      <RestFields />
    </Question>
  );
}

/** Resumes every key that keeps something from running. */
export function ResumeQuestion({ name, keys, force, onClose }: { name: string; keys: string[]; force?: boolean; onClose: () => void }) {
  const act = async () => {
    for (const key of keys) await post("cooldowns", { key, action: "clear", force: force ?? false });
  };
  return <Question title={words.resumeTitle(name)} why={words.resumeWhy} verb={words.resume} onClose={onClose} act={act} />;
}

function BreakerQuestion({ target, onClose }: { target: Target; onClose: () => void }) {
  const act = (form: FormData) => post("breakers", { target: target.key ?? target.target, action: String(form.get("action")) });
  return (
    <Question title={words.breakerTitle(target.target)} why={words.breakerWhy} verb={words.change} onClose={onClose} act={act} danger>
      <fieldset>
        <legend class="hidden">{words.breaker}</legend>
        {Object.entries(words.breakerActions).map(([action, what], index) => (
          <label class="choice" key={action}>
            <input type="radio" name="action" value={action} defaultChecked={index === 0} /> {what}
          </label>
        ))}
      </fieldset>
    </Question>
  );
}

/** The keys that keep a target from being asked, and its own. */
export function keysOf(target: Target): string[] {
  const rests = target.rests.filter(({ state }) => state !== "due").map(({ key }) => key);
  return [...new Set([...rests, ...(target.key ? [target.key] : [])])];
}

export function TargetActions({ target, breaker }: { target: Target; breaker?: boolean }) {
  const [asked, ask] = useState<Asked>(null);
  const close = () => ask(null);
  const key = target.key ?? `target:${target.target}`;
  const needsResume = target.health !== "well" || target.rests.length > 0;
  return (
    <>
      <div class="buttons">
        {needsResume ? (
          <button type="button" class="primary" onClick={() => ask("resume")}>
            {words.resume}
          </button>
        ) : null}
        <button type="button" onClick={() => ask("cool")}>
          {words.cool}…
        </button>
        {breaker ? (
          <button type="button" onClick={() => ask("breaker")}>
            {words.breaker}…
          </button>
        ) : null}
      </div>
      {asked === "cool" ? <CoolQuestion name={target.target} keyName={key} onClose={close} /> : null}
      {asked === "resume" ? <ResumeQuestion name={target.target} keys={keysOf(target)} onClose={close} /> : null}
      {asked === "breaker" ? <BreakerQuestion target={target} onClose={close} /> : null}
    </>
  );
}
