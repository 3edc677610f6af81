/** A small chat on a Koboshi session. Everything that survives a fall (the socket, the server, the provider, a reload) is the client's work; this file shows it. */
import { createSession } from "./koboshi.js";

const WORDS = {
  en: {
    title: "Koboshi chat", language: "日本語", fresh: "New conversation", placeholder: "Ask anything", send: "Send", stop: "Stop",
    lead: "Watch a provider die in the middle of an answer, and the answer go on.",
    hint: "Choose how the simulated provider falls, then send a message. Cut the connection, reload the page, restart the gateway: there is one answer, once.",
    choose: "The provider", log: "What happened", cut: "Cut the connection", cutHint: "or reload the page in mid-answer",
    pending: "not sent yet", stopped: "Stopped. What came so far is kept.", degraded: "A lesser answer, because the service is not available.", length: "The answer met its limit of length.",
    fell: "The provider fell. The answer is being written again.", recovered: "The provider fell in mid-answer; the answer was written again.", retry: "Waiting before the next try.",
    phases: { idle: "", connecting: "connecting", open: "connected", waiting: "reconnecting", closed: "not connected" },
    happened: {
      accepted: () => "The server has your message.", first: () => "The answer begins.", rewind: ({ reason }) => `${words.reasons[reason] ?? words.reasons.other} The answer starts over.`,
      retry: ({ attempt, max_attempts: max, delay_ms: ms }) => `Try ${attempt} of ${max} failed; the next one in ${(ms / 1000).toFixed(1)} s.`,
      degraded: ({ message }) => `A lesser answer follows. ${message ?? ""}`, trimmed: ({ messages }) => (messages ? `${messages} older messages were left out.` : "Long results were shortened, so that the conversation fits."), error: ({ message }) => `The turn failed. ${message}`,
      done: ({ reason, chars }) => `${words.ends[reason] ?? words.ends.stop} ${chars} characters.`, replay: () => "Back: the missed part was replayed.", snapshot: () => "Back: the whole conversation was read again.", cut: () => "The connection is gone.",
    },
    reasons: { connection_closed: "The connection to the provider broke.", retry: "You asked again.", recover: "Another gateway took over.", restart: "The gateway was restarted.", other: "The provider fell." },
    ends: { stop: "Done.", length: "Done, at the limit of length.", filtered: "Ended by the provider's filter.", cancelled: "Stopped.", error: "Ended with an error." },
    scenarios: { ok: "answers", cut: "dies in mid-answer", rate: "is rate limited", down: "is down", quota: "is out of quota" },
    question: "How does the doll get up again?",
    own: "your route {name}", key: "This gateway asks for a key of its own", keySend: "Connect",
  },
  ja: {
    title: "Koboshi チャット", language: "English", fresh: "新しい会話", placeholder: "メッセージを入力", send: "送信", stop: "停止",
    lead: "回答の途中でプロバイダーが落ちても、回答が続く様子をご覧ください。",
    hint: "模擬プロバイダーの落ち方を選んで、メッセージを送ってください。接続を切っても、ページを再読み込みしても、ゲートウェイを再起動しても、正しい回答が 1 つだけ届きます。",
    choose: "プロバイダー", log: "起きたこと", cut: "接続を切る", cutHint: "回答の途中でページを再読み込みしても続きます",
    pending: "送信待ち", stopped: "停止しました。ここまでの回答は残ります。", degraded: "サービスを利用できないため、簡易な回答です。", length: "回答が長さの上限に達しました。",
    fell: "プロバイダーが落ちたため、回答を作り直しています。", recovered: "途中でプロバイダーが落ちたため、回答を作り直しました。", retry: "次の試行を待っています。",
    phases: { idle: "", connecting: "接続しています", open: "接続済み", waiting: "再接続しています", closed: "未接続" },
    happened: {
      accepted: () => "サーバーがメッセージを受け取りました。", first: () => "回答が始まりました。", rewind: ({ reason }) => `${words.reasons[reason] ?? words.reasons.other}回答をやり直します。`,
      retry: ({ attempt, max_attempts: max, delay_ms: ms }) => `${max} 回中 ${attempt} 回目が失敗しました。${(ms / 1000).toFixed(1)} 秒後にもう一度試します。`,
      degraded: ({ message }) => `簡易な回答に切り替えます。${message ?? ""}`, trimmed: ({ messages }) => (messages ? `古いメッセージ ${messages} 件を省きました。` : "会話が収まるように、長い結果を短くしました。"), error: ({ message }) => `失敗しました。${message}`,
      done: ({ reason, chars }) => `${words.ends[reason] ?? words.ends.stop}${chars} 文字。`, replay: () => "再接続し、届かなかった分を受け取りました。", snapshot: () => "再接続し、会話全体を読み直しました。", cut: () => "接続が切れました。",
    },
    reasons: { connection_closed: "プロバイダーとの接続が切れました。", retry: "もう一度依頼しました。", recover: "別のゲートウェイが引き継ぎました。", restart: "ゲートウェイが再起動しました。", other: "プロバイダーが落ちました。" },
    ends: { stop: "完了、", length: "長さの上限で完了、", filtered: "プロバイダーのフィルターで終了、", cancelled: "停止、", error: "エラーで終了、" },
    scenarios: { ok: "回答する", cut: "途中で落ちる", rate: "混み合う", down: "止まっている", quota: "利用枠切れ" },
    question: "起き上がり小法師はどうやって起き上がりますか。",
    own: "設定のルート {name}", key: "このゲートウェイのキーを入力してください", keySend: "接続",
  },
};

/** The models of the simulated provider. A seed makes each press a fall of its own. */
const MODELS = {
  ok: () => "sim/ok?gap=45ms&chunks=60",
  cut: () => `sim/cut?after=18&times=1&gap=70ms&chunks=60&seed=${seed()}`,
  rate: () => `sim/rate-429?retry_after=2&times=1&gap=45ms&seed=${seed()}`,
  down: () => "sim/fail-503",
  quota: () => "sim/quota",
};
const fill = (text, name) => text.replace("{name}", name);
const seed = () => Math.floor(Math.random() * 1e6);
const $ = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);

let lang = query.get("lang") ?? localStorage.getItem("koboshi-chat-lang") ?? (navigator.language.startsWith("ja") ? "ja" : "en");
if (!(lang in WORDS)) lang = "en";
let words = WORDS[lang];
let session;
let socket;
/** The text of the open turn as it was shown last, and what a rewind took back of it: that fades. */
let before = { turn: 0, text: "" };
let gone = "";
let falls = new Map();
let shownError = null;
let phaseTimer;
/** A key of the gateway, where it needs one; it stays in this page's memory. */
let key = "";
/** Routes of the gateway. */
let own = [];

/** The real WebSocket, held so that the page can cut it. */
class CuttableSocket extends WebSocket {
  constructor(...given) {
    super(...given);
    socket = this;
  }
}

function start() {
  const address = query.get("url") ?? `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/session`;
  session = createSession({ url: address, lang, WebSocket: CuttableSocket, storageKey: "koboshi-chat", ticket: key ? ticket : undefined });
  [before, gone, falls, shownError] = [{ turn: 0, text: "" }, "", new Map(), null];
  session.subscribe(render);
  session.on("error", (error) => error.scope !== "connection" || error.retry?.later === false ? show(error) : undefined);
  session.on("close", ({ error }) => {
    if (error) show(error);
    if (error?.kind === "unauthorized" || error?.kind === "token_expired") askForKey();
  });
  void tell(session);
}

/** A ticket for the key that was typed in. In an app its server does this, and the page never sees the key. */
async function ticket() {
  const answer = await fetch("/v1/session/ticket", { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }, body: "{}" });
  if (!answer.ok) {
    askForKey();
    throw new Error(String(answer.status));
  }
  return (await answer.json()).ticket;
}

/** The routes of the gateway's own config can be asked too. It lists them beside the models that they lead to, which belong to a provider. */
async function findOwn() {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const answer = await fetch("/v1/models", { headers }).catch(() => null);
  const models = answer?.ok ? (await answer.json()).data : [];
  own = models.filter(({ owned_by: owner }) => owner === "koboshi").map(({ id }) => id).filter((id) => !id.includes("*")).slice(0, 4);
  label();
}

/** Keeps the list of what happened. */
async function tell(from) {
  let wasOpen = false;
  let hasText = 0;
  for await (const event of from.events()) {
    if (event.type === "connection" && wasOpen && event.phase === "waiting") note("cut", {}, true);
    if (event.type !== "frame") continue;
    const { frame } = event;
    if (frame.type === "session") {
      if (!wasOpen) void findOwn();
      if (wasOpen && frame.resumed !== "new") note(frame.resumed, frame);
      wasOpen = true;
    } else if (frame.type === "content") {
      if (hasText !== frame.turn) note("first", frame);
      hasText = frame.turn;
    } else if (frame.type === "rewind") {
      falls.set(frame.turn, (falls.get(frame.turn) ?? 0) + 1);
      document.body.classList.remove("fell");
      requestAnimationFrame(() => document.body.classList.add("fell"));
      note("rewind", frame, true);
    } else note(frame.type, frame, frame.type === "error");
  }
}

function note(type, frame, isLoud = false) {
  const say = words.happened[type];
  if (!say) return;
  const item = document.createElement("li");
  const time = document.createElement("span");
  const what = document.createElement("span");
  time.textContent = new Date().toLocaleTimeString("en-GB");
  what.textContent = say(frame);
  what.className = isLoud ? "loud" : "";
  item.append(time, what);
  $("log").append(item);
  while ($("log").children.length > 200) $("log").firstChild.remove();
  $("log").scrollTop = $("log").scrollHeight;
}

function show(error) {
  if (error === shownError) return;
  shownError = error;
  $("error").error = error;
}

/** Says at once that all is well, and what is not well only when it lasts: a moment's pause is no news for a screen reader. */
function tellConnection(phase) {
  clearTimeout(phaseTimer);
  const say = () => ($("connection").textContent = words.phases[phase]);
  if (phase === "open" || phase === "closed") say();
  else phaseTimer = setTimeout(say, 2000);
}

function render(state) {
  const { connection, messages, turn, outbox } = state;
  if (!turn || before.turn !== turn.turn) gone = "";
  else if (!turn.text.startsWith(before.text)) gone = before.text;
  before = { turn: turn?.turn, text: turn?.text ?? "" };
  $("connection").dataset.phase = connection;
  tellConnection(connection);
  $("intro").hidden = messages.length + outbox.length > 0;
  $("stop").hidden = !turn;
  $("send").hidden = Boolean(turn);
  if (turn || state.error === null) clearError(state);
  const rows = [];
  for (const message of messages) {
    if (message.role === "user") {
      rows.push([`u${message.turn}`, "user", message.content]);
      if (turn?.turn === message.turn) rows.push([`a${turn.turn}`, "answer", turn.text, { open: turn }]);
    } else rows.push([`a${message.turn}`, "answer", message.content, { message }]);
  }
  for (const { id, content } of outbox) rows.push([`o${id}`, "user pending", content]);
  const list = $("messages");
  const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  rows.forEach(([key, kind, text, of], place) => {
    let row = list.children[place];
    if (row?.dataset.key !== key) {
      row = document.createElement("li");
      row.dataset.key = key;
      list.insertBefore(row, list.children[place] ?? null);
    }
    row.className = kind;
    if (kind === "answer") answer(row, text, of);
    else {
      row.textContent = typeof text === "string" ? text : JSON.stringify(text);
      if (kind.includes("pending")) row.append(line(words.pending));
    }
  });
  while (list.children.length > rows.length) list.lastChild.remove();
  if (isAtEnd) scrollTo({ top: document.documentElement.scrollHeight });
}

/** The error leaves when its turn is tried again, or another one begins. */
function clearError(state) {
  if (!shownError || (state.error === shownError && !state.turn)) return;
  shownError = null;
  $("error").clear();
}

function answer(row, text, { open, message }) {
  const number = open?.turn ?? message.turn;
  const paragraph = document.createElement("p");
  paragraph.append(text);
  if (open) {
    const taken = gone.slice(text.length);
    if (taken) {
      const faded = row.querySelector(".gone") ?? document.createElement("span");
      faded.className = "gone";
      faded.ariaHidden = "true";
      faded.textContent = taken;
      paragraph.append(faded);
    }
    const caret = document.createElement("span");
    caret.className = "caret";
    caret.ariaHidden = "true";
    // Behind the text that counts, and before what was taken back.
    paragraph.insertBefore(caret, paragraph.childNodes[1] ?? null);
  }
  const notes = [];
  if (falls.get(number)) notes.push(line(open ? words.fell : words.recovered, "fall"));
  if (open?.retry) notes.push(line(open.retry.message || words.retry));
  if (message?.reason === "cancelled") notes.push(line(words.stopped));
  if (message?.reason === "length") notes.push(line(words.length));
  if (message?.degraded) notes.push(line(words.degraded));
  row.replaceChildren(paragraph, ...notes);
}

function askForKey() {
  $("key").hidden = false;
  $("key-input").focus();
}

function line(text, kind = "note") {
  const note = document.createElement("span");
  note.className = kind;
  note.textContent = text;
  return note;
}

function chosenRoute() {
  const chosen = new FormData($("composer")).get("model") ?? "ok";
  return MODELS[chosen]?.() ?? chosen;
}

function submit() {
  const text = $("input").value.trim() || $("input").placeholder;
  const turn = session.send(text, { route: chosenRoute() });
  $("input").value = "";
  // Input that the server never got goes back to the composer.
  turn.then(null, (error) => {
    const waits = session.state.outbox.some(({ id }) => id === turn.id);
    if (!turn.accepted && !waits && !$("input").value) $("input").value = text;
    show(error);
  });
}

function label() {
  document.documentElement.lang = lang;
  document.title = words.title;
  $("lang").textContent = words.language;
  $("lang").lang = lang === "ja" ? "en" : "ja";
  $("new").textContent = words.fresh;
  $("send").textContent = words.send;
  $("stop").textContent = words.stop;
  $("input").placeholder = words.question;
  $("input").setAttribute("aria-label", words.placeholder);
  $("scenarios-title").textContent = words.choose;
  $("log-title").textContent = words.log;
  $("cut").textContent = words.cut;
  $("cut-hint").textContent = words.cutHint;
  document.querySelector(".lead").textContent = words.lead;
  document.querySelector(".hint").textContent = words.hint;
  const chosen = new FormData($("composer")).get("model") ?? query.get("model") ?? "cut";
  $("key-label").textContent = words.key;
  $("key-send").textContent = words.keySend;
  const labels = [...Object.keys(MODELS), ...own].map((name) => {
    const box = document.createElement("label");
    const radio = document.createElement("input");
    Object.assign(radio, { type: "radio", name: "model", value: name, checked: name === chosen });
    radio.setAttribute("form", "composer");
    box.append(radio, words.scenarios[name] ?? fill(words.own, name));
    return box;
  });
  $("scenarios").replaceChildren($("scenarios-title"), ...labels);
}

$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key-input").value;
  [$("key-input").value, $("key").hidden] = ["", true];
  $("error").clear();
  session.close();
  start();
});
$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
$("input").addEventListener("keydown", (event) => {
  // Enter also ends a conversion of Japanese input; that one is not for us.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
});
$("stop").addEventListener("click", () => session.cancel());
$("cut").addEventListener("click", () => socket?.close(4000));
$("new").addEventListener("click", () => {
  session.end({ forget: true });
  $("error").clear();
  $("log").replaceChildren();
  start();
});
$("lang").addEventListener("click", () => {
  lang = lang === "ja" ? "en" : "ja";
  localStorage.setItem("koboshi-chat-lang", lang);
  location.search = "";
});
$("error").addEventListener("koboshi-retry", ({ detail: { action, turn } }) => {
  if (action === "new") return $("new").click();
  if (session.state.connection === "closed") {
    $("error").clear();
    return session.connect();
  }
  if (action === "trim") session.trim(2);
  session.retry(turn).then(null, show);
});
$("error").addEventListener("koboshi-dismiss", () => (shownError = session.state.error));

label();
start();
