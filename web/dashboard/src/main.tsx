/** The page itself: who may see it, where one is, in which language and colours. */
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signIn, signOut } from "./api";
import { live, useLive } from "./live";
import { Agents } from "./pages/agents";
import { ConfigPage } from "./pages/config";
import { Faults } from "./pages/faults";
import { Now } from "./pages/now";
import { People } from "./pages/people";
import { Spend } from "./pages/spend";
import { ErrorText } from "./parts";
import { chooseLanguage, firstLanguage, lang, words } from "./words";
import type { Lang } from "./words";

const PAGES = ["now", "faults", "agents", "spend", "people", "config"] as const;
type Page = (typeof PAGES)[number];

const THEME = "koboshi-theme";
type Theme = "auto" | "light" | "dark";

function keptTheme(): Theme {
  try {
    const kept = localStorage.getItem(THEME);
    if (kept === "light" || kept === "dark") return kept;
  } catch {
    // A page without storage follows the system.
  }
  return "auto";
}

function useTheme(): [Theme, (to: Theme) => void, string] {
  const [theme, set] = useState(keptTheme);
  const [isDark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  document.documentElement.dataset["theme"] = theme;
  const choose = (to: Theme) => {
    set(to);
    try {
      localStorage.setItem(THEME, to);
    } catch {
      // As above.
    }
  };
  return [theme, choose, `${theme} ${isDark}`];
}

const pageOf = (hash: string): Page => PAGES.find((page) => hash === `#/${page}`) ?? "now";

function App() {
  const { visitor, link } = useLive();
  const [page, setPage] = useState(pageOf(location.hash));
  const [, draw] = useState(0);
  const [theme, setTheme, look] = useTheme();
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    const change = () => {
      setPage(pageOf(location.hash));
      scrollTo(0, 0);
      // A reader of the screen is told where it is now.
      main.current?.focus({ preventScroll: true });
    };
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  useEffect(() => {
    document.title = visitor?.signed_in ? `${words[page]} · Koboshi` : "Koboshi";
  });
  const isIn = visitor?.signed_in === true;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        {words.skip}
      </a>
      <header class="top">
        <div class="top-in">
          <span class="brand">
            <img src="icon.svg" alt="" width="26" height="26" /> Koboshi
          </span>
          {isIn ? (
            <nav aria-label={words.nav}>
              {PAGES.map((one) => (
                <a key={one} href={`#/${one}`} aria-current={one === page ? "page" : undefined}>
                  {words[one]}
                </a>
              ))}
            </nav>
          ) : null}
          <div class="top-right">
            {isIn ? (
              <span class={`link-state ${link}`} role="status">
                {link === "live" ? words.live : link === "away" ? words.away : words.connecting}
              </span>
            ) : null}
            <select
              aria-label={words.language}
              value={lang}
              onChange={(event) => {
                chooseLanguage(event.currentTarget.value as Lang);
                draw((n) => n + 1);
                live.tell();
              }}
            >
              <option value="en">English</option>
              <option value="ja">日本語</option>
            </select>
            <select aria-label={words.theme} value={theme} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
              <option value="auto">{words.themeAuto}</option>
              <option value="light">{words.themeLight}</option>
              <option value="dark">{words.themeDark}</option>
            </select>
            {visitor?.can_sign_out ? (
              <button type="button" class="quiet" onClick={() => void signOut().finally(() => live.poll())}>
                {words.signOut}
              </button>
            ) : null}
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1} key={lang}>
        {visitor === null ? <p class="dim">{link === "away" ? words.away : words.connecting}</p> : isIn ? <Shown page={page} look={look} /> : visitor.can_sign_in ? <SignIn /> : <Closed />}
      </main>
    </>
  );
}

function Shown({ page, look }: { page: Page; look: string }) {
  switch (page) {
    case "faults":
      return <Faults />;
    case "agents":
      return <Agents />;
    case "spend":
      return <Spend look={look} />;
    case "people":
      return <People />;
    case "config":
      return <ConfigPage />;
    default:
      return <Now look={look} />;
  }
}

function SignIn() {
  const [error, setError] = useState<unknown>(null);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get("key") ?? "").trim();
    try {
      await signIn(key);
      setError(null);
      await live.poll();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <form class="card sign-in" onSubmit={(event) => void send(event)}>
      <h1>{words.signIn}</h1>
      <p>{words.signInWhy}</p>
      <label>
        {words.adminKey}
        <input type="password" name="key" autocomplete="current-password" required maxLength={512} />
      </label>
      <ErrorText error={error} />
      <button type="submit" class="primary">
        {words.signIn}
      </button>
      <p class="dim">{words.signInLost}</p>
    </form>
  );
}

function Closed() {
  return (
    <section class="card sign-in">
      <h1>{words.closed}</h1>
      <p>{words.closedWhy}</p>
      <pre tabIndex={0}>{"printf %s \"$ADMIN_KEY\" | sha256sum\n\nadmin:\n  sha256: 64 hex digits"}</pre>
    </section>
  );
}

chooseLanguage(firstLanguage());
const root = document.getElementById("app");
if (root) render(<App />, root);
live.start();
