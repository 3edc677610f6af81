/** Who is connected, which processes share the store, which keys there are. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import type { Budget, SpendReport } from "../api";
import { isRunning, live, useEvery, useLive } from "../live";
import type { Node } from "../live";
import { Badge, Empty } from "../parts";
import { money, number, percent, time, words } from "../words";

interface Session {
  id: string;
  tenant: string;
  connections: number;
  owned: boolean;
}

interface ClientKey {
  tenant?: string | null;
  rate?: number | null;
  routes?: string[] | null;
}

/** How much of its budgets a key has used. */
function used(budgets: Budget[], key: string, currency: string): string {
  const own = budgets.filter((budget) => budget.key === key);
  return own.map(({ period, spent, limit, share }) => `${words.periods[period] ?? period}: ${words.budgetSpent(money(spent, currency), money(limit, currency), percent(share))}`).join(" · ") || words.budgetNone;
}

/** Whether those that run have different configs. */
const differ = (running: Node[]) => new Set(running.map(({ config }) => config ?? "").filter(Boolean)).size > 1;

function State({ node }: { node: Node }) {
  return isRunning(node, live.now()) ? <Badge tone="good">{words.running}</Badge> : <Badge tone="off">{node.stopped ? words.stoppedAt : words.silent}</Badge>;
}

export function People() {
  const { gateways, supervisors, overview } = useLive();
  const [sessions, setSessions] = useState<Session[]>([]);
  const [keys, setKeys] = useState<Record<string, ClientKey> | null>(null);
  const [spent, setSpent] = useState<SpendReport | null>(null);
  useEvery(3_000, () => {
    get<{ sessions: Session[] }>("sessions")
      .then(({ sessions }) => setSessions(sessions))
      .catch(() => undefined);
    void live.readStatus();
  });
  useEvery(10_000, () => {
    get<SpendReport>("spend")
      .then(setSpent)
      .catch(() => undefined);
  });
  useEffect(() => {
    get<{ keys?: Record<string, ClientKey> }>("config")
      .then(({ keys }) => setKeys(keys ?? {}))
      .catch(() => undefined);
  }, []);
  const now = live.now();
  const running = gateways.filter((gateway) => isRunning(gateway, now));
  const keeping = supervisors.filter((supervisor) => isRunning(supervisor, now));
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
      <section class="card nodes" aria-labelledby="nodes-title">
        <h2 id="nodes-title">{words.nodes}</h2>
        <p class="dim">{words.nodesWhy}</p>
        {differ(running) ? <p class="error">{words.nodesDiffer}</p> : null}
        {differ(keeping) ? <p class="error">{words.supervisorsDiffer}</p> : null}
        <h3>
          {words.gateways} <span class="dim">· {words.ofRunning(running.length, gateways.length)}</span>
        </h3>
        <Table head={[words.node, words.state, words.address, words.version, words.config, words.since]}>
          {gateways.map((gateway) => (
            <tr key={gateway.node}>
              <td>
                <code>{gateway.node}</code> {gateway.node === overview?.node ? <span class="dim">({words.thisNode})</span> : null}
              </td>
              <td>
                <State node={gateway} />
              </td>
              <td>{gateway.address}</td>
              <td>{gateway.version}</td>
              <td>
                <code>{gateway.config ?? "–"}</code>
              </td>
              <td>{time(gateway.started, live.now())}</td>
            </tr>
          ))}
        </Table>
        <h3>
          {words.supervisors} {supervisors.length > 0 ? <span class="dim">· {words.ofRunning(keeping.length, supervisors.length)}</span> : null}
        </h3>
        {supervisors.length === 0 ? (
          <p class="dim">{words.supervisorsNone}</p>
        ) : (
          <Table head={[words.node, words.state, words.agentsThatRun, words.version, words.config, words.since]}>
            {supervisors.map((supervisor) => (
              <tr key={supervisor.node}>
                <td>
                  <code>{supervisor.node}</code>
                </td>
                <td>
                  <State node={supervisor} />
                </td>
                <td>{words.agentsRunning(isRunning(supervisor, live.now()) ? supervisor.running : 0, supervisor.agents)}</td>
                <td>{supervisor.version}</td>
                <td>
                  <code>{supervisor.config}</code>
                </td>
                <td>{time(supervisor.started, live.now())}</td>
              </tr>
            ))}
          </Table>
        )}
      </section>
      <section class="card" aria-labelledby="keys-title">
        <h2 id="keys-title">{words.keys}</h2>
        {keys && Object.keys(keys).length === 0 ? (
          <Empty title={words.keysEmpty} why={words.keysEmptyWhy} code={"koboshi key new laptop --budget-month 20"} />
        ) : (
          <Table head={[words.keys, words.tenant, words.budgets, words.rateLimit, words.allowedRoutes]}>
            {Object.entries(keys ?? {}).map(([name, { tenant, rate, routes }]) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{tenant ?? name}</td>
                <td>{spent ? used(spent.budgets, name, spent.currency) : "–"}</td>
                <td>{rate ? words.perMinute(number(rate)) : words.budgetNone}</td>
                <td>{routes && routes.length > 0 ? routes.join(", ") : words.everything}</td>
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
