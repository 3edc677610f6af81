/**
 * The client in React: `useSession` makes one session for a component, `useSessionState` reads one, `KoboshiErrorDisplay` wraps the element.
 *
 * React mounts a component twice in StrictMode: a session is closed a moment after its component left, and not at all if it comes back at once, so that there is
 * one connection. The wrapper sets properties and listens to events itself, because React before version 19 does neither for elements of others.
 */
import { createElement, type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from "react";
import "../display/define.js";
import type { KoboshiErrorElement, Phrases, RetryDetail, Shown } from "../display/element.js";
import { createSession, type Session, type SessionOptions, type SessionState } from "../session.js";

/** A session for as long as the component is mounted. Options are read once. */
export function useSession(options: SessionOptions): Session {
  const [session] = useState(() => createSession(options));
  const leaving = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    clearTimeout(leaving.current);
    session.connect();
    return () => {
      leaving.current = setTimeout(() => session.close(), 0);
    };
  }, [session]);
  return session;
}

/** The state of a session; the component renders again when it changes. */
export function useSessionState(session: Session): SessionState {
  const read = () => session.state;
  return useSyncExternalStore(session.subscribe, read, read);
}

export interface KoboshiErrorDisplayProps {
  readonly error: Shown | null;
  readonly lang?: string;
  readonly retryAt?: number | null;
  readonly tried?: number;
  readonly busy?: boolean;
  readonly auto?: boolean;
  readonly tone?: "error" | "warning" | "info";
  readonly compact?: boolean;
  readonly phrases?: Phrases;
  readonly className?: string;
  /** Slots: elements with `slot="icon"`, `message`, `suggestion`, `actions` or `details`. */
  readonly children?: ReactNode;
  /** `preventDefault()` keeps the button as it is. */
  readonly onRetry?: (event: CustomEvent<RetryDetail>) => void;
  readonly onDismiss?: (event: CustomEvent<{ error: Shown | null }>) => void;
  readonly onCopy?: (event: CustomEvent<{ text: string }>) => void;
}

export function KoboshiErrorDisplay({ children, className, onRetry, onDismiss, onCopy, ...properties }: KoboshiErrorDisplayProps): ReactNode {
  const element = useRef<KoboshiErrorElement>(null);
  const handlers = useRef({ onRetry, onDismiss, onCopy });
  handlers.current = { onRetry, onDismiss, onCopy };
  useEffect(() => {
    if (element.current) Object.assign(element.current, { tried: 0, phrases: {}, tone: "error", compact: false, auto: false, ...properties });
  });
  useEffect(() => {
    const shown = element.current;
    const listeners: [string, EventListener][] = [
      ["koboshi-retry", (event) => handlers.current.onRetry?.(event as CustomEvent<RetryDetail>)],
      ["koboshi-dismiss", (event) => handlers.current.onDismiss?.(event as CustomEvent<{ error: Shown | null }>)],
      ["koboshi-copy", (event) => handlers.current.onCopy?.(event as CustomEvent<{ text: string }>)],
    ];
    for (const [type, listener] of listeners) shown?.addEventListener(type, listener);
    return () => {
      for (const [type, listener] of listeners) shown?.removeEventListener(type, listener);
    };
  }, []);
  return createElement("koboshi-error", { ref: element, class: className }, children);
}
