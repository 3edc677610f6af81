/** Who is connected, which processes share the store, which keys there are. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import type { Gateway } from "../api";
import { live, useEvery, useLive } from "../live";
import { Badge, Empty } from "../parts";
import { time, words } from "../words";

interface Session {
  id: string;
  tenant: string;
  connections: number;
  owned: boolean;
}

const isRunning = (gateway: Gateway, now: number) => !gateway.stopped && now - Date.parse(gateway.at) < 30_000;

export function People() {
  const { gateways, overview } = useLive();
  const [sessions, setSessions] = useState<Session[]>([]);
  const [keys, setKeys] = useState<Record<string, { tenant?: string | null }> | null>(null);
  useEvery(3_000, () => {
    get<{ sessions: Session[] }>("sessions")
      .then(({ sessions }) => setSessions(sessions))
      .catch(() => undefined);
    void live.readStatus();
  });
  useEffect(() => {
    get<{ keys?: Record<string, { tenant?: string | null }> }>("config")
      .then(({ keys }) => setKeys(keys ?? {}))
      .catch(() => undefined);
  }, []);
  const running = gateways.filter((gateway) => isRunning(gateway, live.now()));
  const configs = new Set(running.map(({ config }) => config ?? "").filter(Boolean));
  return (
    <>
      <h1>{words.peopleTitle}</h1>
      <section class="card" aria-labelledby="sessions-title">
        <h2 id="sessions-title">{words.sessions}</h2>
        {sessions.length === 0 ? (
          <Empty title={words.sessionsEmpty} why={words.sessionsEmptyWhy} code="koboshi serve --chat" />
        ) : (
          <Table head={["ID", words.tenant, words.connections, words.turn]}>
            {sessions.map((session) => (
              <tr key={session.id}>
                <td>
                  <code>{session.id}…</code>
                </td>
                <td>{session.tenant}</td>
                <td>{session.connections}</td>
                <td>{session.owned ? words.yes : words.no}</td>
              </tr>
            ))}
          </Table>
        )}
      </section>
      <section class="card" aria-labelledby="nodes-title">
        <h2 id="nodes-title">{words.nodes}</h2>
        <p class="dim">{words.nodesWhy}</p>
        {configs.size > 1 ? <p class="error">{words.nodesDiffer}</p> : null}
        <Table head={[words.node, words.state, words.address, words.version, words.config, words.since]}>
          {gateways.map((gateway) => (
            <tr key={gateway.node}>
              <td>
                <code>{gateway.node}</code> {gateway.node === overview?.node ? <span class="dim">({words.thisNode})</span> : null}
              </td>
              <td>{isRunning(gateway, live.now()) ? <Badge tone="good">{words.running}</Badge> : <Badge tone="off">{gateway.stopped ? words.stoppedAt : words.silent}</Badge>}</td>
              <td>{gateway.address}</td>
              <td>{gateway.version}</td>
              <td>
                <code>{gateway.config ?? "–"}</code>
              </td>
              <td>{time(gateway.started, live.now())}</td>
            </tr>
          ))}
        </Table>
      </section>
      <section class="card" aria-labelledby="keys-title">
        <h2 id="keys-title">{words.keys}</h2>
        {keys && Object.keys(keys).length === 0 ? (
          <Empty title={words.keysEmpty} why={words.keysEmptyWhy} code={"KEY=kbs-$(openssl rand -hex 24); printf %s \"$KEY\" | sha256sum\n\nkeys:\n  laptop: {sha256: 64 hex digits}"} />
        ) : (
          <Table head={[words.keys, words.tenant]}>
            {Object.entries(keys ?? {}).map(([name, { tenant }]) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{tenant ?? name}</td>
              </tr>
            ))}
          </Table>
        )}
      </section>
    </>
  );
}

function Table({ head, children }: { head: string[]; children: ComponentChildren }) {
  return (
    <div class="table" tabIndex={0} role="group">
      <table>
        <thead>
          <tr>
            {head.map((one) => (
              <th scope="col" key={one}>
                {one}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
