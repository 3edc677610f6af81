/** Small parts that every page uses. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";
import type { Target } from "./api";
import { live, useNow } from "./live";
import { span, time, words } from "./words";

/** How bad a state is: its colour and its mark. Colour never speaks alone. */
export const TONE: Record<string, "good" | "warn" | "bad" | "off"> = { well: "good", probing: "warn", open: "bad", cooling: "warn", parked: "bad", held: "warn", absent: "bad", forced_open: "off", forced_closed: "off", disabled: "off", running: "good", stopped: "off", waiting: "off" };
const MARK = { good: "●", warn: "◐", bad: "▲", off: "■" };

export function Badge({ tone, children }: { tone: "good" | "warn" | "bad" | "off"; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{MARK[tone]}</span> {children}
    </span>
  );
}

/** Down: no request is sent there. */
export const isDown = (target: Target) => !["well", "probing", "forced_closed", "disabled"].includes(target.health);

/** Until when a target is out of use, if that is known. */
export function endOf(target: Target): string | null {
  const rests = target.rests.filter(({ state }) => state !== "due").map(({ until }) => until);
  const ends = [...rests, target.health === "open" ? target.breaker.until : null].filter((end): end is string => end !== null);
  return ends.sort().at(-1) ?? null;
}

export function Countdown({ until }: { until: string }) {
  const left = Date.parse(until) - useNow();
  return <span class="nowrap">{left > 0 ? `${words.until(time(until, live.now()))} · ${words.left(span(left))}` : words.overdue}</span>;
}

export function TargetBadge({ target }: { target: Target }) {
  return <Badge tone={TONE[target.health] ?? "off"}>{words.health[target.health] ?? target.health}</Badge>;
}

/** Why a target is as it is: the provider's or the operator's own words where there are any. */
export function reasonOf(target: Target): string {
  const rest = target.rests.find(({ state }) => state !== "due");
  return rest?.said || words.because[target.health] || "";
}

/** Why a target is as it is, and what failed last. */
export function Why({ target }: { target: Target }) {
  const reason = reasonOf(target);
  const last = target.health === "open" || target.health === "probing" ? live.entries.find(({ what, key }) => what === "fault" && key !== null && key === target.key) : undefined;
  return (
    <>
      {reason ? <p>{reason}</p> : null}
      {last ? (
        <p class="dim">
          {words.lastFault}: {last.kind} · {last.text}
        </p>
      ) : null}
    </>
  );
}

/** What is shown where nothing is: why, and the first step. */
export function Empty({ title, why, code }: { title: string; why?: string; code?: string }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {why ? <p>{why}</p> : null}
      {code ? <pre tabIndex={0}>{code}</pre> : null}
    </div>
  );
}

/** A window over the page: a sheet at its side, or a question in its middle. */
export function Dialog({ title, onClose, sheet, children }: { title: string; onClose: () => void; sheet?: boolean; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const element = dialog.current;
    element?.showModal();
    return () => {
      // What is behind an open one takes no focus.
      element?.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={sheet ? "sheet" : "question"}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div class="dialog-body">
        <header>
          <h2>{title}</h2>
          <button type="button" class="quiet" onClick={onClose} aria-label={words.close}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A change with its question: nothing happens before it is answered. */
export function Question({ title, why, verb, danger, onClose, act, children }: { title: string; why: string; verb: string; danger?: boolean; onClose: () => void; act: (form: FormData) => Promise<unknown>; children?: ComponentChildren }) {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await act(new FormData(event.currentTarget as HTMLFormElement));
      onClose();
      void live.poll();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void send(event)}>
        <p>{why}</p>
        {children}
        <ErrorText error={error} />
        <div class="buttons end">
          <button type="button" onClick={onClose}>
            {words.cancel}
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function ErrorText({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  const said = error instanceof ApiError ? `${error.message} ${error.suggestion}` : error instanceof TypeError ? words.away : String(error);
  return (
    <p class="error" role="alert">
      {said}
    </p>
  );
}

/** For how long, and why. */
export function RestFields() {
  return (
    <>
      <label>
        {words.coolFor}
        <select name="for">
          {[15, 60, 240, 1440].map((minutes) => (
            <option value={minutes} key={minutes}>
              {minutes < 60 ? words.minutes(minutes) : words.hours(minutes / 60)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {words.coolReason}
        <input name="reason" maxLength={200} autocomplete="off" />
      </label>
    </>
  );
}

export const restUntil = (form: FormData) => new Date(live.now() + Number(form.get("for")) * 60_000).toISOString();

/**
 * Rows of one height, of which only those in sight are in the document. The newest is first; whoever has scrolled down keeps the place
 * while more come in front.
 */
export function Rows<T>({ items, height, keyOf, label, row, onOpen }: { items: T[]; height: number; keyOf: (item: T) => string; label: string; row: (item: T) => ComponentChildren; onOpen: (item: T) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [tall, setTall] = useState(600);
  const seen = useRef<string | null>(null);
  const focus = useRef<number | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setTall(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    const before = seen.current;
    seen.current = items[0] === undefined ? null : keyOf(items[0]);
    if (!element || before === null || before === seen.current || element.scrollTop <= height / 2) return;
    const fresh = items.findIndex((item) => keyOf(item) === before);
    if (fresh > 0) element.scrollTop += fresh * height;
  }, [items]);
  const first = Math.max(0, Math.floor(top / height) - 6);
  const last = Math.min(items.length, Math.ceil((top + tall) / height) + 6);
  useEffect(() => {
    if (focus.current === null) return;
    const wanted = box.current?.querySelector<HTMLElement>(`[data-at="${focus.current}"]`);
    if (wanted) {
      wanted.focus({ preventScroll: true });
      focus.current = null;
    }
  });
  const move = (event: KeyboardEvent) => {
    const element = box.current;
    const at = Number((event.target as HTMLElement).dataset["at"] ?? Number.NaN);
    if (!element || Number.isNaN(at)) return;
    const page = Math.max(1, Math.floor(tall / height) - 1);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: items.length - 1 };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = Math.min(items.length - 1, Math.max(0, to));
    focus.current = next;
    if (next * height < element.scrollTop) element.scrollTop = next * height;
    else if ((next + 1) * height > element.scrollTop + tall) element.scrollTop = (next + 1) * height - tall;
    element.querySelector<HTMLElement>(`[data-at="${next}"]`)?.focus({ preventScroll: true });
  };
  return (
    <div class="rows" ref={box} onScroll={() => setTop(box.current?.scrollTop ?? 0)} onKeyDown={move}>
      <div role="list" aria-label={label} style={{ height: `${items.length * height}px` }}>
        {items.slice(first, last).map((item, index) => (
          <div role="listitem" aria-setsize={items.length} aria-posinset={first + index + 1} class="row-place" key={first + index} style={{ transform: `translateY(${(first + index) * height}px)`, height: `${height}px` }}>
            <button type="button" class="row" data-at={first + index} tabIndex={first + index === Math.min(items.length - 1, Math.floor(top / height)) ? 0 : -1} onClick={() => onOpen(item)}>
              {row(item)}
            </button>
          </div>
        ))}
      </div>
    </div>
  );
}

